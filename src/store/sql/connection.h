// One connection: a SOCI session and its prepared statements. Internal to store/sql; the only
// header that includes SOCI.
#pragma once

#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "store/sql/value.h"

namespace expanse::store::sql {

struct Prepared;

// Not thread-safe: one thread at a time. Translates every exception of SOCI to an error.
class Connection {
 public:
  static base::Result<std::unique_ptr<Connection>> Open(const std::string& path,
                                                        std::chrono::milliseconds busy_timeout,
                                                        bool read_only);
  ~Connection();

  base::Status BeginWrite();
  base::Status BeginRead();
  base::Status Commit();
  // Also for a transaction that the engine has already ended.
  void Rollback();

  base::Result<std::int64_t> Execute(std::string_view sql, std::span<const Value> params);
  base::Status Query(std::string_view sql, std::span<const Value> params,
                     std::span<const Column> columns,
                     const std::function<base::Result<bool>(const Row&)>& on_row);
  // Runs one statement without keeping it prepared: DDL, PRAGMA.
  base::Status RunOnce(const std::string& sql);

 private:
  Connection() = default;
  base::Result<Prepared*> Prepare(std::string_view sql, std::span<const Value> params,
                                  std::span<const Column> columns);
  base::Error Translate(const std::exception& error);

  soci::session session_;
  std::unordered_map<std::string, std::unique_ptr<Prepared>> statements_;
};

}  // namespace expanse::store::sql
