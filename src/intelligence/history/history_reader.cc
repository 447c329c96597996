#include "intelligence/history/history_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "intelligence/history/history_tables.h"

namespace expanse::intelligence::history {
namespace {

using store::sql::Column;
using store::sql::Row;
using store::sql::Transaction;
using store::sql::Value;

// Bundles with one file in common that are looked at closely: a wrapper may be in all there are.
constexpr std::size_t kMostAround = 300;
constexpr std::size_t kMostOfOneKey = 100;

template <typename T>
std::vector<T> FromBytes(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

auto ByTime(const Candidate& candidate) {
  return std::tie(candidate.run.run.submitted_micros, candidate.run.execution_id);
}

}  // namespace

base::Result<std::vector<Place>> HistoryReader::Places(std::string_view organisation_id) {
  std::vector<Place> places;
  EXPANSE_RETURN_IF_ERROR(tx_.Query(
      "SELECT place_id, compute_id FROM place WHERE organisation_id = :organisation ORDER BY "
      "compute_id",
      {organisation_id}, {Column::kInt, Column::kText}, [&](const Row& row) {
        places.push_back({.place_id = row.Int(0), .compute_id = row.Text(1)});
      }));
  return places;
}

base::Result<std::optional<std::string>> HistoryReader::RedactedAs(std::string_view organisation_id,
                                                                   std::string_view content_hash) {
  std::optional<std::string> hash;
  EXPANSE_RETURN_IF_ERROR(
      tx_.Query("SELECT normalised_hash FROM redacted_file WHERE organisation_id = :organisation "
                "AND content_hash = :content",
                {organisation_id, content_hash}, {Column::kText},
                [&](const Row& row) { hash = row.Text(0); }));
  return hash;
}

base::Result<std::vector<std::int64_t>> HistoryReader::BundlesWithKey(
    std::string_view organisation_id, std::string_view bundle_key) {
  std::vector<std::int64_t> bundles;
  EXPANSE_RETURN_IF_ERROR(
      tx_.Query("SELECT bundle_id FROM bundle WHERE organisation_id = :organisation AND bundle_key "
                "= :key ORDER BY bundle_id DESC LIMIT :limit",
                {organisation_id, bundle_key, kMostOfOneKey}, {Column::kInt},
                [&](const Row& row) { bundles.push_back(row.Int(0)); }));
  return bundles;
}

base::Result<bool> HistoryReader::FitsAround(std::int64_t bundle_id, std::string_view entry_hash,
                                             const std::set<std::string>& files) {
  std::size_t common = 0;
  std::size_t all = 0;
  EXPANSE_RETURN_IF_ERROR(
      tx_.Query("SELECT normalised_hash FROM bundle_file WHERE bundle_id = :bundle", {bundle_id},
                {Column::kText}, [&](const Row& row) {
                  ++all;
                  common += files.contains(row.Text(0)) ? 1 : 0;
                }));
  if (common == files.size()) return true;
  if (common < all) return false;
  bool same_entry = false;
  EXPANSE_RETURN_IF_ERROR(
      tx_.Query("SELECT entry_hash FROM bundle WHERE bundle_id = :bundle", {bundle_id},
                {Column::kText}, [&](const Row& row) { same_entry = row.Text(0) == entry_hash; }));
  return same_entry;
}

base::Result<std::vector<std::int64_t>> HistoryReader::BundlesAround(
    std::string_view organisation_id, std::string_view entry_hash,
    const std::set<std::string>& files) {
  std::vector<std::int64_t> near;
  EXPANSE_RETURN_IF_ERROR(
      tx_.Query("SELECT bundle_id FROM bundle_file WHERE organisation_id = :organisation AND "
                "normalised_hash = :hash ORDER BY bundle_id DESC LIMIT :limit",
                {organisation_id, entry_hash, kMostAround}, {Column::kInt},
                [&](const Row& row) { near.push_back(row.Int(0)); }));
  std::vector<std::int64_t> around;
  for (const std::int64_t bundle_id : near) {
    EXPANSE_ASSIGN_OR_RETURN(const bool fits, FitsAround(bundle_id, entry_hash, files));
    if (fits) around.push_back(bundle_id);
  }
  return around;
}

base::Result<BundleFacts> HistoryReader::Facts(std::int64_t bundle_id) {
  BundleFacts facts;
  EXPANSE_RETURN_IF_ERROR(
      tx_.Query("SELECT shape_hash, numbers FROM bundle WHERE bundle_id = :bundle", {bundle_id},
                {Column::kText, Column::kBytes}, [&](const Row& row) {
                  facts = {.shape_hash = row.Text(0), .numbers = FromBytes<double>(row.Blob(1))};
                }));
  return facts;
}

base::Status HistoryReader::SelectNewest(std::string_view condition,
                                         std::initializer_list<Value> keys,
                                         const std::vector<Place>& places, std::size_t limit,
                                         std::vector<Candidate>* runs) {
  if (places.empty()) return {};
  std::string sql = fmt::format(
      "SELECT execution_id, bundle_id, detail FROM run WHERE {} AND place_id IN (", condition);
  std::vector<Value> params(keys);
  // Few texts of the statement, so that it stays prepared: the last place fills up to a power of
  // two.
  for (std::size_t i = 0; i < std::bit_ceil(places.size()); ++i) {
    sql += fmt::format("{}:place{}", i == 0 ? "" : ", ", i);
    params.emplace_back(places[std::min(i, places.size() - 1)].place_id);
  }
  sql += ") ORDER BY submitted_at DESC LIMIT :limit";
  params.emplace_back(limit);
  return tx_.Query(sql, params, {Column::kText, Column::kInt, Column::kBytes}, [&](const Row& row) {
    auto run = DecodeRun(row.Blob(2));
    if (!run) {  // one damaged row must not hide the rest
      base::LogError("history.corrupt", {{"execution", row.Text(0)}});
      return;
    }
    run->execution_id = row.Text(0);
    run->run.execution_id = row.Text(0);
    runs->push_back({.run = std::move(*run), .bundle_id = row.Int(1)});
  });
}

base::Status HistoryReader::RunsOfBundle(std::int64_t bundle_id, const std::string* arguments_hash,
                                         const std::vector<Place>& places, std::size_t limit,
                                         std::vector<Candidate>* runs) {
  std::set<std::int64_t> has_run_at;
  EXPANSE_RETURN_IF_ERROR(tx_.Query("SELECT place_id FROM bundle_place WHERE bundle_id = :bundle",
                                    {bundle_id}, {Column::kInt},
                                    [&](const Row& row) { has_run_at.insert(row.Int(0)); }));
  std::vector<Place> here;
  for (const Place& place : places) {
    if (has_run_at.contains(place.place_id)) here.push_back(place);
  }
  if (arguments_hash == nullptr)
    return SelectNewest("bundle_id = :bundle", {bundle_id}, here, limit, runs);
  const auto before = static_cast<std::ptrdiff_t>(runs->size());
  EXPANSE_RETURN_IF_ERROR(SelectNewest("bundle_id = :bundle AND arguments_key = :arguments",
                                       {bundle_id, TextKey(*arguments_hash)}, here, limit, runs));
  const auto other = [&](const Candidate& candidate) {
    return candidate.run.arguments_hash != *arguments_hash;
  };
  runs->erase(std::remove_if(runs->begin() + before, runs->end(), other), runs->end());
  return {};
}

base::Status HistoryReader::RunsOfName(std::string_view user, std::string_view job_name,
                                       const std::vector<Place>& places, std::size_t limit,
                                       std::vector<Candidate>* runs) {
  EXPANSE_RETURN_IF_ERROR(
      SelectNewest("name_key = :name", {NameKey(user, job_name)}, places, limit, runs));
  std::erase_if(*runs, [&](const Candidate& candidate) {
    return candidate.run.user != user || candidate.run.job_name != job_name;
  });
  return {};
}

base::Status HistoryReader::RunsOfOwner(std::string_view owner, const std::vector<Place>& places,
                                        std::size_t limit, std::vector<Candidate>* runs) {
  EXPANSE_RETURN_IF_ERROR(
      SelectNewest("owner_key = :owner", {TextKey(owner)}, places, limit, runs));
  std::erase_if(*runs, [&](const Candidate& candidate) { return candidate.run.owner != owner; });
  return {};
}

bool KeepNewest(std::size_t limit, std::vector<Candidate>* runs) {
  std::sort(runs->begin(), runs->end(),
            [](const Candidate& a, const Candidate& b) { return ByTime(a) > ByTime(b); });
  if (runs->size() <= limit) return false;
  runs->resize(limit);
  return true;
}

base::Status EachSignature(Transaction& tx,
                           const std::function<void(const StoredSignature&)>& on_signature) {
  return tx.Query("SELECT organisation_id, bundle_id, signature FROM bundle", {},
                  {Column::kText, Column::kInt, Column::kBytes}, [&](const Row& row) {
                    on_signature({.organisation_id = row.Text(0),
                                  .bundle_id = row.Int(1),
                                  .signature = FromBytes<std::uint32_t>(row.Blob(2))});
                  });
}

}  // namespace expanse::intelligence::history
