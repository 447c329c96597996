#include "store/sql/connection.h"

#include <fmt/format.h>

#include <cerrno>
#include <deque>
#include <exception>

#include "base/log.h"

namespace expanse::store::sql {
namespace {

// Statements kept prepared per connection. Filters make a few dozen texts; the bound is a guard.
constexpr std::size_t kMaxPrepared = 256;

// A parameter's storage: SOCI binds addresses once, values are copied in before each run.
struct Slot {
  explicit Slot(Value::Type t) : type(t) {}
  Value::Type type;
  soci::indicator indicator = soci::i_ok;
  long long integer = 0;
  double real = 0;
  std::string text;
  std::unique_ptr<soci::blob> blob;
};

void AppendSignature(char kind, Value::Type type, std::string* out) {
  *out += kind;
  *out += static_cast<char>('0' + static_cast<int>(type));
}

void Assign(const Value& value, Slot* slot) {
  slot->indicator = value.null() ? soci::i_null : soci::i_ok;
  if (value.null()) return;
  switch (slot->type) {
    case Value::Type::kInt:
      slot->integer = value.AsInt();
      break;
    case Value::Type::kReal:
      slot->real = value.AsReal();
      break;
    case Value::Type::kText:
      slot->text.assign(value.AsText());
      break;
    case Value::Type::kBytes: {
      const std::string_view data = value.AsBytes();
      slot->blob->trim(0);
      slot->blob->append(data.data(), data.size());
      break;
    }
  }
}

// The engine's own handles. UBSan's check of these casts needs type information of SOCI's classes,
// which its library does not export.
__attribute__((no_sanitize("vptr"))) sqlite_api::sqlite3* EngineOf(soci::session& session) {
  auto* backend = static_cast<soci::sqlite3_session_backend*>(session.get_backend());
  return backend == nullptr ? nullptr : backend->conn_;
}
__attribute__((no_sanitize("vptr"))) sqlite_api::sqlite3_stmt* EngineOf(
    soci::statement& statement) {
  auto* backend = static_cast<soci::sqlite3_statement_backend*>(statement.get_backend());
  return backend == nullptr ? nullptr : backend->stmt_;
}

// Ends a statement that still stands on a row. A read left open would pin its snapshot, and with it
// the write-ahead log.
void Reset(soci::statement& statement) {
  if (auto* handle = EngineOf(statement)) sqlite_api::sqlite3_reset(handle);
}

}  // namespace

struct Prepared {
  explicit Prepared(soci::session& session) : statement(session) {}
  soci::statement statement;
  std::deque<Slot> params;  // deques: addresses stay
  std::deque<Slot> columns;
  std::vector<Row::Cell> cells;
  bool running = false;

  void Load() {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Slot& slot = columns[i];
      Row::Cell& cell = cells[i];
      cell.null = slot.indicator == soci::i_null;
      cell.text.clear();
      if (cell.null) continue;
      switch (slot.type) {
        case Value::Type::kInt:
          cell.integer = slot.integer;
          break;
        case Value::Type::kReal:
          cell.real = slot.real;
          break;
        case Value::Type::kText:
          cell.text = slot.text;
          break;
        case Value::Type::kBytes:
          cell.text.resize(slot.blob->get_len());
          if (!cell.text.empty()) slot.blob->read(0, cell.text.data(), cell.text.size());
          break;
      }
    }
  }
};

Connection::~Connection() {
  // Statements refer to the session and go first.
  statements_.clear();
  try {
    session_.close();
  } catch (const std::exception&) {
    // Nothing can be done, and nothing is lost: what was acknowledged is already durable.
  }
}

base::Error Connection::Translate(const std::exception& error) {
  using base::Code;
  const int system = errno;  // of the call that failed; the engine keeps it for some calls only
  int result = SQLITE_ERROR;
  if (const auto* known = dynamic_cast<const soci::sqlite3_soci_error*>(&error)) {
    result = known->result() & 0xFF;  // the primary code
  } else if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {Code::kResourceExhausted, "store.memory", "the store ran out of memory"};
  }
  int extended = result;
  std::string engine;
  if (auto* engine_handle = EngineOf(session_)) {
    extended = sqlite_api::sqlite3_extended_errcode(engine_handle);
    engine = sqlite_api::sqlite3_errmsg(engine_handle);
  }
  const bool growing = extended == SQLITE_IOERR_WRITE || extended == SQLITE_IOERR_SHMSIZE ||
                       extended == SQLITE_IOERR_TRUNCATE || extended == SQLITE_IOERR_FSYNC;
  const bool no_space = system == ENOSPC || system == EDQUOT || system == EFBIG;
  if (result == SQLITE_FULL || (growing && no_space)) {
    return {Code::kResourceExhausted, "store.disk_full",
            "the disk of the store is full; free space or enlarge it, then try again"};
  }
  switch (result) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {Code::kUnavailable, "store.busy", "the store is busy; try again"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {Code::kDataLoss, "store.corrupt",
              "the store's file is damaged or not a database; restore it from a backup"};
    case SQLITE_CONSTRAINT:
      return {Code::kAlreadyExists, "store.constraint",
              "the record conflicts with one that exists"};
    default:
      // A bug of ours or a failing disk. The engine's own words name columns, never values.
      base::LogError("store.sql", {{"engine", engine}, {"code", extended}, {"errno", system}});
      return {Code::kInternal, "store.sql",
              fmt::format("the store failed (engine code {}, system error {})", extended, system)};
  }
}

base::Result<std::unique_ptr<Connection>> Connection::Open(const std::string& path,
                                                           std::chrono::milliseconds busy_timeout,
                                                           bool read_only) {
  std::unique_ptr<Connection> connection(new Connection);
  try {
    connection->session_.open(soci::sqlite3, fmt::format("dbname=\"{}\"", path));
    sqlite_api::sqlite3_busy_timeout(EngineOf(connection->session_),
                                     static_cast<int>(busy_timeout.count()));
  } catch (const std::exception& error) {
    return std::unexpected(connection->Translate(error).With("opening " + path));
  }
  // FULL: the log is synced at each commit, so that what is acknowledged survives a power cut.
  for (const char* pragma : {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL",
                             "PRAGMA foreign_keys=ON", "PRAGMA journal_size_limit=67108864",
                             "PRAGMA cache_size=-16384", "PRAGMA temp_store=MEMORY"}) {
    if (auto status = connection->RunOnce(pragma); !status) {
      return std::unexpected(std::move(status).error().With("opening " + path));
    }
  }
  if (read_only) EXPANSE_RETURN_IF_ERROR(connection->RunOnce("PRAGMA query_only=ON"));
  return connection;
}

base::Status Connection::RunOnce(const std::string& sql) {
  try {
    session_.once << sql;
    return {};
  } catch (const std::exception& error) {
    return std::unexpected(Translate(error));
  }
}

base::Status Connection::BeginWrite() {
  auto begun = Execute("BEGIN IMMEDIATE", {});
  if (!begun) return std::unexpected(std::move(begun).error());
  return {};
}

base::Status Connection::BeginRead() {
  auto begun = Execute("BEGIN", {});
  if (!begun) return std::unexpected(std::move(begun).error());
  return {};
}

base::Status Connection::Commit() {
  auto committed = Execute("COMMIT", {});
  if (!committed) return std::unexpected(std::move(committed).error());
  return {};
}

void Connection::Rollback() {
  // After some errors (disk full, I/O) the engine has rolled back by itself.
  if (sqlite_api::sqlite3_get_autocommit(EngineOf(session_)) == 0) (void)Execute("ROLLBACK", {});
}

base::Result<Prepared*> Connection::Prepare(std::string_view sql, std::span<const Value> params,
                                            std::span<const Column> columns) {
  std::string key(sql);
  key += '\0';
  for (const Value& value : params) AppendSignature('p', value.type(), &key);
  for (Column column : columns) AppendSignature('c', column, &key);
  if (auto found = statements_.find(key); found != statements_.end()) return found->second.get();

  if (statements_.size() >= kMaxPrepared) {
    std::erase_if(statements_, [](const auto& entry) { return !entry.second->running; });
  }
  auto made = std::make_unique<Prepared>(session_);
  for (const Value& value : params) {
    Slot& slot = made->params.emplace_back(value.type());
    switch (slot.type) {
      case Value::Type::kInt:
        made->statement.exchange(soci::use(slot.integer, slot.indicator));
        break;
      case Value::Type::kReal:
        made->statement.exchange(soci::use(slot.real, slot.indicator));
        break;
      case Value::Type::kText:
        made->statement.exchange(soci::use(slot.text, slot.indicator));
        break;
      case Value::Type::kBytes:
        slot.blob = std::make_unique<soci::blob>(session_);
        made->statement.exchange(soci::use(*slot.blob, slot.indicator));
        break;
    }
  }
  for (Column column : columns) {
    Slot& slot = made->columns.emplace_back(column);
    switch (column) {
      case Column::kInt:
        made->statement.exchange(soci::into(slot.integer, slot.indicator));
        break;
      case Column::kReal:
        made->statement.exchange(soci::into(slot.real, slot.indicator));
        break;
      case Column::kText:
        made->statement.exchange(soci::into(slot.text, slot.indicator));
        break;
      case Column::kBytes:
        slot.blob = std::make_unique<soci::blob>(session_);
        made->statement.exchange(soci::into(*slot.blob, slot.indicator));
        break;
    }
  }
  made->cells.resize(columns.size());
  made->statement.alloc();
  made->statement.prepare(std::string(sql));
  made->statement.define_and_bind();
  return statements_.emplace(std::move(key), std::move(made)).first->second.get();
}

base::Result<std::int64_t> Connection::Execute(std::string_view sql,
                                               std::span<const Value> params) {
  Prepared* prepared = nullptr;
  try {
    EXPANSE_ASSIGN_OR_RETURN(prepared, Prepare(sql, params, {}));
    EXPANSE_CHECK(!prepared->running);
    for (std::size_t i = 0; i < params.size(); ++i) Assign(params[i], &prepared->params[i]);
    prepared->statement.execute(/*withDataExchange=*/true);
    const std::int64_t changed = prepared->statement.get_affected_rows();
    Reset(prepared->statement);
    return changed;
  } catch (const std::exception& error) {
    base::Error translated = Translate(error);
    if (prepared != nullptr) Reset(prepared->statement);
    return std::unexpected(std::move(translated));
  }
}

base::Status Connection::Query(std::string_view sql, std::span<const Value> params,
                               std::span<const Column> columns,
                               const std::function<base::Result<bool>(const Row&)>& on_row) {
  Prepared* prepared = nullptr;
  try {
    EXPANSE_ASSIGN_OR_RETURN(prepared, Prepare(sql, params, columns));
    EXPANSE_CHECK(!prepared->running);
    prepared->running = true;
    for (std::size_t i = 0; i < params.size(); ++i) Assign(params[i], &prepared->params[i]);
    base::Result<bool> more = prepared->statement.execute(/*withDataExchange=*/true);
    const Row row(prepared->cells);
    while (more && *more) {
      prepared->Load();
      more = on_row(row);
      if (more && *more) more = prepared->statement.fetch();
    }
    Reset(prepared->statement);
    prepared->running = false;
    if (!more) return std::unexpected(std::move(more).error());
    return {};
  } catch (const std::exception& error) {
    base::Error translated = Translate(error);
    if (prepared != nullptr) {
      Reset(prepared->statement);
      prepared->running = false;
    }
    return std::unexpected(std::move(translated));
  }
}

}  // namespace expanse::store::sql
