// Where the runbooks of the moment are had from.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "intelligence/diagnose/runbook_set.h"

namespace expanse::intelligence {

// The runbooks in force and the version that their answers are cached under.
struct Runbooks {
  std::shared_ptr<const diagnose::RunbookSet> set;
  std::string version;
  std::string site_error;  // what is wrong with the site's own, which are then as they were before
};

// Thread-safe.
class RunbookSource {
 public:
  virtual ~RunbookSource() = default;
  virtual Runbooks Current() = 0;
};

// Those that are part of the program.
class EmbeddedRunbooks final : public RunbookSource {
 public:
  // Fails as RunbookSet::Create.
  static base::Result<std::unique_ptr<EmbeddedRunbooks>> Create();
  Runbooks Current() override { return {.set = set_, .version = "embedded", .site_error = {}}; }

 private:
  explicit EmbeddedRunbooks(std::shared_ptr<const diagnose::RunbookSet> set)
      : set_(std::move(set)) {}
  std::shared_ptr<const diagnose::RunbookSet> set_;
};

}  // namespace expanse::intelligence
