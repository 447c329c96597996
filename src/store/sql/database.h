// The database under the embedded stores and the control plane: transactions, statements, numbered
// migrations. SOCI does the work and stays in database.cc and connection.cc, so that few files pay
// for its headers and none sees its exceptions.
//
// SQL is written for SQLite and PostgreSQL alike: upserts with ON CONFLICT, RETURNING, no functions
// of one engine. Placeholders are :name, each used once per statement, bound in order of
// appearance. In migrations {bytes}, {int64} and {real} stand for the engine's column types.
//
// Errors (messages never contain SQL or values):
//   resource_exhausted store.disk_full     no space, quota or file-size limit
//   unavailable        store.busy          another process or thread holds the database too long
//   data_loss          store.corrupt       the file is damaged or not a database
//   already_exists     store.constraint    a unique, foreign-key, check or not-null rule
//   failed_precondition store.newer        the schema was made by a newer program
//   internal           store.sql           anything else
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/sql/value.h"

namespace expanse::store::sql {

class Connection;

// A running transaction. Not thread-safe; lives only during the body it is passed to.
class Transaction {
 public:
  explicit Transaction(Connection& connection) : connection_(connection) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // Runs a statement that returns no rows; the number of rows it changed. Prepared once per
  // connection and kept (the cache is bounded).
  base::Result<std::int64_t> Execute(std::string_view sql,
                                     std::initializer_list<Value> params = {});
  base::Result<std::int64_t> Execute(std::string_view sql, std::span<const Value> params);

  // Calls `on_row` for each row. It returns nothing, or a bool (false ends the query well), or a
  // Status (an error ends the query with it). It may run other statements, but not this same one.
  template <typename F>
  base::Status Query(std::string_view sql, std::span<const Value> params,
                     std::initializer_list<Column> columns, F&& on_row) {
    using R = std::invoke_result_t<F, const Row&>;
    return QueryRows(sql, params, columns, [&](const Row& row) -> base::Result<bool> {
      if constexpr (std::is_void_v<R>) {
        on_row(row);
      } else if constexpr (std::is_same_v<R, bool>) {
        return on_row(row);
      } else {
        EXPANSE_RETURN_IF_ERROR(on_row(row));
      }
      return true;
    });
  }
  template <typename F>
  base::Status Query(std::string_view sql, std::initializer_list<Value> params,
                     std::initializer_list<Column> columns, F&& on_row) {
    return Query(sql, std::span(params.begin(), params.size()), columns, std::forward<F>(on_row));
  }
  // Called if the transaction does not commit, before another one can begin: what memory holds
  // about the database goes back too.
  void OnRollback(std::function<void()> undo) { undo_ = std::move(undo); }
  // The first column of the first row as an integer; nothing when there is no row or it is NULL.
  base::Result<std::optional<std::int64_t>> QueryInt(std::string_view sql,
                                                     std::initializer_list<Value> params = {});

 private:
  base::Status QueryRows(std::string_view sql, std::span<const Value> params,
                         std::span<const Column> columns,
                         const std::function<base::Result<bool>(const Row&)>& on_row);
  friend class Database;
  Connection& connection_;
  std::function<void()> undo_;
};

// One step of a schema. Versions count from 1 without gaps; a released migration never changes.
struct Migration {
  int version = 0;
  std::string name;
  std::vector<std::string> statements;
};

struct DatabaseOptions {
  std::string path;         // the directory must exist; the file is created with mode 0600
  std::size_t readers = 4;  // connections that read at the same time
  // How long a transaction waits for its turn or for another process before store.busy.
  std::chrono::milliseconds busy_timeout{10'000};
};

// Thread-safe. One transaction writes at a time, in the order in which they asked; readers see the
// last commit and wait for no writer. Destroy only after the last call has returned.
class Database {
 public:
  // Opens or creates the file and brings its schema to the last of `migrations`. Two processes may
  // do so at once. Fails with os.* when the directory or file cannot be used.
  static base::Result<std::unique_ptr<Database>> Open(DatabaseOptions options,
                                                      std::span<const Migration> migrations);
  ~Database();

  // Runs `body` (Transaction& -> Result<T> or Status) in a transaction: committed and durable when
  // this returns a value; rolled back when `body` or the commit fails. Do not nest.
  template <typename F>
  auto WithWrite(F&& body) -> std::invoke_result_t<F, Transaction&> {
    return Run(Mode::kWrite, std::forward<F>(body));
  }
  // The same for reading: all statements of `body` see one state of the database.
  template <typename F>
  auto WithRead(F&& body) -> std::invoke_result_t<F, Transaction&> {
    return Run(Mode::kRead, std::forward<F>(body));
  }

  int schema_version() const;

 private:
  enum class Mode : std::uint8_t { kRead, kWrite };
  class Impl;
  explicit Database(std::unique_ptr<Impl> impl);

  base::Status RunErased(Mode mode, const std::function<base::Status(Transaction&)>& body);

  template <typename F>
  auto Run(Mode mode, F&& body) -> std::invoke_result_t<F, Transaction&> {
    using R = std::invoke_result_t<F, Transaction&>;
    std::optional<R> result;
    base::Status status = RunErased(mode, [&](Transaction& tx) -> base::Status {
      result.emplace(body(tx));
      if (!result->has_value()) return std::unexpected(result->error());
      return {};
    });
    if (!status) return std::unexpected(std::move(status).error());
    return std::move(*result);
  }

  std::unique_ptr<Impl> impl_;
};

}  // namespace expanse::store::sql
