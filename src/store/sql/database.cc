#include "store/sql/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>

#include "base/files.h"
#include "store/sql/connection.h"
#include "store/sql/migrate.h"

namespace expanse::store::sql {
namespace {

// Creates the file before the engine does, so that it and its logs are never readable by others.
base::Status CreatePrivately(const std::string& path) {
  if (path.find('"') != std::string::npos) {
    return base::Fail(base::Code::kInvalidArgument, "store.path",
                      "the path of a store must not contain a quotation mark");
  }
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::FailErrno(errno, "open " + path);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return base::FailErrno(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return base::Fail(base::Code::kFailedPrecondition, "store.path",
                      path + " is not a regular file");
  }
  if ((info.st_mode & 0077) != 0 && ::fchmod(fd.get(), 0600) != 0) {
    return base::FailErrno(errno, "chmod " + path);
  }
  if (info.st_size > 0) return {};
  const auto slash = path.rfind('/');
  return base::FsyncDirectory(slash == std::string::npos ? "."
                              : slash == 0               ? "/"
                                                         : path.substr(0, slash));
}

}  // namespace

// Lends connections: the one writer, and readers up to a bound, made when first needed.
class Database::Impl {
 public:
  Impl(DatabaseOptions options, std::unique_ptr<Connection> writer, int version)
      : options_(std::move(options)), writer_(std::move(writer)), version_(version) {}

  base::Result<std::unique_ptr<Connection>> Take(Mode mode) {
    std::unique_lock lock(mutex_);
    if (mode == Mode::kWrite) return TakeWriter(lock);
    const bool turn = returned_.wait_for(
        lock, options_.busy_timeout, [&] { return !idle_.empty() || readers_ < options_.readers; });
    if (!turn) return Busy();
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
    ++readers_;
    lock.unlock();
    auto connection = Connection::Open(options_.path, options_.busy_timeout, /*read_only=*/true);
    if (!connection) {
      lock.lock();
      --readers_;
      returned_.notify_all();
    }
    return connection;
  }

  void Return(Mode mode, std::unique_ptr<Connection> connection) {
    {
      const std::lock_guard lock(mutex_);
      if (mode == Mode::kWrite) {
        writer_ = std::move(connection);
      } else {
        idle_.push_back(std::move(connection));
      }
    }
    returned_.notify_all();
  }

  int version() const { return version_; }

 private:
  static std::unexpected<base::Error> Busy() {
    return base::Fail(base::Code::kUnavailable, "store.busy", "the store is busy; try again");
  }

  // In the order of asking: who writes in a loop (retention) would otherwise have the connection
  // back before a thread that waits for it has woken up.
  base::Result<std::unique_ptr<Connection>> TakeWriter(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t ticket = next_ticket_++;
    waiting_writers_.insert(ticket);
    const bool turn = returned_.wait_for(lock, options_.busy_timeout, [&] {
      return writer_ != nullptr && *waiting_writers_.begin() == ticket;
    });
    waiting_writers_.erase(ticket);
    if (turn) return std::move(writer_);
    returned_.notify_all();  // the next in line may have waited for this one
    return Busy();
  }

  const DatabaseOptions options_;
  std::mutex mutex_;  // guards what follows; never held over I/O
  std::condition_variable returned_;
  std::unique_ptr<Connection> writer_;  // null while lent
  std::uint64_t next_ticket_ = 0;
  std::set<std::uint64_t> waiting_writers_;  // tickets, the oldest first
  std::vector<std::unique_ptr<Connection>> idle_;
  std::size_t readers_ = 0;  // made, lent or idle
  const int version_;
};

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::~Database() = default;

base::Result<std::unique_ptr<Database>> Database::Open(DatabaseOptions options,
                                                       std::span<const Migration> migrations) {
  EXPANSE_RETURN_IF_ERROR(CreatePrivately(options.path));
  options.readers = std::max<std::size_t>(options.readers, 1);
  EXPANSE_ASSIGN_OR_RETURN(
      auto writer, Connection::Open(options.path, options.busy_timeout, /*read_only=*/false));
  EXPANSE_ASSIGN_OR_RETURN(const int version, Migrate(*writer, migrations, options.path));
  return std::unique_ptr<Database>(
      new Database(std::make_unique<Impl>(std::move(options), std::move(writer), version)));
}

int Database::schema_version() const { return impl_->version(); }

base::Status Database::RunErased(Mode mode, const std::function<base::Status(Transaction&)>& body) {
  EXPANSE_ASSIGN_OR_RETURN(auto connection, impl_->Take(mode));
  base::Status status = mode == Mode::kWrite ? connection->BeginWrite() : connection->BeginRead();
  if (status) {
    Transaction transaction(*connection);
    status = body(transaction);
    if (status) status = connection->Commit();
    if (!status) {
      connection->Rollback();
      if (transaction.undo_) transaction.undo_();
    }
  }
  impl_->Return(mode, std::move(connection));
  return status;
}

base::Result<std::int64_t> Transaction::Execute(std::string_view sql,
                                                std::initializer_list<Value> params) {
  return connection_.Execute(sql, std::span(params.begin(), params.size()));
}

base::Result<std::int64_t> Transaction::Execute(std::string_view sql,
                                                std::span<const Value> params) {
  return connection_.Execute(sql, params);
}

base::Result<std::optional<std::int64_t>> Transaction::QueryInt(
    std::string_view sql, std::initializer_list<Value> params) {
  std::optional<std::int64_t> value;
  bool first = true;
  EXPANSE_RETURN_IF_ERROR(Query(sql, params, {Column::kInt}, [&](const Row& row) {
    if (std::exchange(first, false)) value = row.MaybeInt(0);
  }));
  return value;
}

base::Status Transaction::QueryRows(std::string_view sql, std::span<const Value> params,
                                    std::span<const Column> columns,
                                    const std::function<base::Result<bool>(const Row&)>& on_row) {
  return connection_.Query(sql, params, columns, on_row);
}

}  // namespace expanse::store::sql
