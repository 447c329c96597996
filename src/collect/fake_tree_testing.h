// A directory that stands for a host's "/", filled by a test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/files.h"
#include "collect/collector.h"

namespace expanse::collect {

class FakeTree {
 public:
  FakeTree() : temp_(*base::TempDir::Create("collect")) {}
  const std::string& root() const { return temp_.path(); }

  // Overwrites in place, so that descriptors that are open see the new text, as with the kernel's
  // files.
  void Write(std::string_view path, std::string_view text) {
    const std::string full = base::JoinPath(root(), path);
    ASSERT_TRUE(base::MakeDirectories(full.substr(0, full.rfind('/'))));
    FILE* file = std::fopen(full.c_str(), "w");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
    std::fclose(file);
  }
  void Remove(std::string_view path) {
    ASSERT_TRUE(base::RemoveTree(base::JoinPath(root(), path)));
  }

 private:
  base::TempDir temp_;
};

inline Tick TickAt(std::chrono::milliseconds since) {
  constexpr std::chrono::seconds kEpoch{1'800'000'000};
  return {base::WallTime(kEpoch) + since, base::MonoTime(std::chrono::seconds(5000)) + since};
}

}  // namespace expanse::collect
