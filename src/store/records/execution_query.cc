#include "store/records/execution_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/log.h"
#include "store/records/detail.h"

namespace expanse::store::records {
namespace {

using sql::Bytes;
using sql::Column;
using sql::Row;
using sql::Value;

// Records of a page, all together. Runs on thousands of nodes are large, and a page may ask for a
// thousand of them.
constexpr std::size_t kMaxPageBytes = 32U << 20;

// A row of the list before its record is decoded.
struct Candidate {
  ExecutionCursor place;
  std::string detail;
};

bool Newer(const Candidate& a, const Candidate& b) {
  return std::tie(a.place.sort_micros, a.place.execution_id) >
         std::tie(b.place.sort_micros, b.place.execution_id);
}

// The columns that equality filters compare, the most selective first: the first one present
// chooses the index. A status or outcome that most runs end with comes after the compute.
enum class Driver : std::uint8_t { kNone, kNativeId, kUser, kStatus, kOutcome, kCompute, kSource };

Driver ChooseDriver(const ExecutionFilter& filter) {
  const bool rare_status = filter.status && filter.status != evidence::ExecutionStatus::kSucceeded;
  const bool rare_outcome = filter.outcome && filter.outcome != evidence::Outcome::kSuccess;
  if (!filter.native_id.empty()) return Driver::kNativeId;
  if (!filter.users.empty()) return Driver::kUser;
  if (rare_status) return Driver::kStatus;
  if (rare_outcome) return Driver::kOutcome;
  if (!filter.compute_id.empty()) return Driver::kCompute;
  if (filter.source_type) return Driver::kSource;
  if (filter.status) return Driver::kStatus;
  if (filter.outcome) return Driver::kOutcome;
  return Driver::kNone;
}

// Puts a statement together.
class PageBuilder {
 public:
  explicit PageBuilder(Driver driver) : driver_(driver) {
    page_.sql =
        "SELECT sort_at, execution_id, detail FROM execution WHERE organisation_id = :organisation";
  }

  // A unary plus keeps SQLite from taking another index than the driver's; its planner knows no
  // better, and a page that is sorted after the fact reads everything.
  void Equal(Driver column_of, const char* column, Value value) {
    page_.sql += fmt::format(" AND {}{} = :{}", column_of == driver_ ? "" : "+", column, column);
    page_.params.push_back(value);
  }
  void Raw(const char* condition) { page_.sql += condition; }
  void Add(Value value) { page_.params.push_back(value); }
  PageStatement Finish() { return std::move(page_); }

 private:
  const Driver driver_;
  PageStatement page_;
};

evidence::Execution DecodeOrName(const Candidate& candidate) {
  auto execution = DecodeExecution(candidate.detail);
  if (execution) return std::move(*execution);
  // One damaged record must not hide the rest of the list; asking for it alone says what is wrong.
  base::LogError("store.corrupt", {{"execution", candidate.place.execution_id},
                                   {"error", execution.error().message}});
  evidence::Execution named;
  named.execution_id = candidate.place.execution_id;
  named.capture_notes = {"the stored record is damaged"};
  return named;
}

// The rows of a page while it is put together.
class Gathered {
 public:
  explicit Gathered(std::size_t wanted) : wanted_(wanted) {}

  // Adds the rows of one statement, newest first, as far as the bound on bytes goes.
  base::Status Select(sql::Transaction& tx, const PageStatement& page) {
    std::size_t bytes = 0;
    EXPANSE_RETURN_IF_ERROR(tx.Query(
        page.sql, page.params, {Column::kInt, Column::kText, Column::kBytes}, [&](const Row& row) {
          bytes += row.Blob(2).size();
          if (bytes > kMaxPageBytes && bytes > row.Blob(2).size()) {
            EndAt(rows_.back());
            return false;
          }
          rows_.push_back({{.sort_micros = row.Int(0), .execution_id = row.Text(1)}, row.Blob(2)});
          return true;
        }));
    Trim();
    return {};
  }
  std::vector<Candidate> TakeRows() { return std::move(rows_); }
  bool cut() const { return end_.has_value(); }

 private:
  // Nothing behind this row is known completely.
  void EndAt(const Candidate& last) {
    if (!end_ || Newer(last, *end_)) end_ = Candidate{last.place, {}};
  }
  void Trim() {
    std::sort(rows_.begin(), rows_.end(), Newer);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      bytes += rows_[i].detail.size();
      if (i == 0 || bytes <= kMaxPageBytes) continue;
      EndAt(rows_[i - 1]);
      break;
    }
    if (end_) std::erase_if(rows_, [&](const Candidate& row) { return Newer(*end_, row); });
    if (rows_.size() > wanted_) rows_.resize(wanted_);
  }

  const std::size_t wanted_;
  std::vector<Candidate> rows_;
  std::optional<Candidate> end_;
};

}  // namespace

PageStatement BuildPage(const ExecutionFilter& filter, const std::string* user,
                        const std::optional<ExecutionCursor>& after, std::size_t limit) {
  PageBuilder page(ChooseDriver(filter));
  page.Add(filter.organisation_id);
  if (!filter.native_id.empty())
    page.Equal(Driver::kNativeId, "native_id", Bytes{filter.native_id});
  if (user != nullptr && user->empty()) page.Raw(" AND user_name IS NULL");
  if (user != nullptr && !user->empty()) page.Equal(Driver::kUser, "user_name", Bytes{*user});
  if (filter.status) page.Equal(Driver::kStatus, "status", static_cast<int>(*filter.status));
  if (filter.outcome) page.Equal(Driver::kOutcome, "outcome", static_cast<int>(*filter.outcome));
  if (!filter.compute_id.empty()) page.Equal(Driver::kCompute, "compute_id", filter.compute_id);
  if (filter.source_type)
    page.Equal(Driver::kSource, "source_type", static_cast<int>(*filter.source_type));
  // For a run that has started, its start is its sort time, which the index knows.
  if (filter.started_after || filter.started_before) page.Raw(" AND started_at IS NOT NULL");
  if (filter.started_after) {
    page.Raw(" AND sort_at >= :started_after");
    page.Add(*filter.started_after);
  }
  if (filter.started_before) {
    page.Raw(" AND sort_at < :started_before");
    page.Add(*filter.started_before);
  }
  if (after) {
    page.Raw(" AND (sort_at, execution_id) < (:after, :after_id)");
    page.Add(after->sort_micros);
    page.Add(after->execution_id);
  }
  page.Raw(" ORDER BY sort_at DESC, execution_id DESC LIMIT :limit");
  page.Add(limit);
  return page.Finish();
}

base::Result<ExecutionPage> ListExecutions(sql::Transaction& tx, const ExecutionFilter& filter,
                                           const std::optional<ExecutionCursor>& after,
                                           std::size_t limit) {
  ExecutionPage page;
  if (limit == 0) return page;
  const std::size_t wanted = limit + 1;  // one more tells whether there is a next page
  Gathered gathered(wanted);
  if (filter.users.empty()) {
    EXPANSE_RETURN_IF_ERROR(gathered.Select(tx, BuildPage(filter, nullptr, after, wanted)));
  } else {
    // Each user's rows lie in order in the index; those of several do not.
    std::vector<std::string> users = filter.users;
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    for (const std::string& user : users) {
      EXPANSE_RETURN_IF_ERROR(gathered.Select(tx, BuildPage(filter, &user, after, wanted)));
    }
  }
  std::vector<Candidate> rows = gathered.TakeRows();
  const bool more = rows.size() > limit || gathered.cut();
  if (rows.size() > limit) rows.resize(limit);
  if (more) page.next = rows.back().place;
  page.executions.reserve(rows.size());
  for (const Candidate& row : rows) page.executions.push_back(DecodeOrName(row));
  return page;
}

}  // namespace expanse::store::records
