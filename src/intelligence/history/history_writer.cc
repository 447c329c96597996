#include "intelligence/history/history_writer.h"

#include <cstring>
#include <type_traits>

#include "intelligence/history/history_tables.h"

namespace expanse::intelligence::history {
namespace {

using store::sql::Bytes;
using store::sql::Column;
using store::sql::Row;
using store::sql::Transaction;
using store::sql::Value;

// Instead of a bundle: what was captured had nothing that tells.
constexpr std::int64_t kNoSource = 0;

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string EntryHash(const Fingerprint& print) {
  return print.entry < print.files.size() ? print.files[print.entry].normalised_hash
                                          : std::string();
}

base::Status SetState(Transaction& tx, const char* name, std::int64_t value) {
  EXPANSE_RETURN_IF_ERROR(
      tx.Execute("INSERT INTO state (name, value) VALUES (:name, :value) ON CONFLICT (name) DO "
                 "UPDATE SET value = excluded.value",
                 {name, value}));
  return {};
}

base::Result<std::int64_t> ReadState(Transaction& tx, const char* name) {
  EXPANSE_ASSIGN_OR_RETURN(const auto value,
                           tx.QueryInt("SELECT value FROM state WHERE name = :name", {name}));
  return value.value_or(0);
}

std::optional<std::int64_t> KeyOrNone(std::string_view text) {
  return text.empty() ? std::nullopt : std::optional(TextKey(text));
}

}  // namespace

base::Result<store::FeedPlace> ReadPlace(Transaction& tx) {
  EXPANSE_ASSIGN_OR_RETURN(const std::int64_t version, ReadState(tx, "version"));
  if (version != kIndexVersion * 1000 + kFingerprintVersion) return store::FeedPlace{};
  EXPANSE_ASSIGN_OR_RETURN(const std::int64_t change, ReadState(tx, "change"));
  EXPANSE_ASSIGN_OR_RETURN(const std::int64_t began, ReadState(tx, "began"));
  return store::FeedPlace{.change = static_cast<std::uint64_t>(change),
                          .began = static_cast<std::uint64_t>(began)};
}

base::Status HistoryWriter::SetPlace(const store::FeedPlace& place) {
  EXPANSE_RETURN_IF_ERROR(SetState(tx_, "version", kIndexVersion * 1000 + kFingerprintVersion));
  EXPANSE_RETURN_IF_ERROR(SetState(tx_, "change", static_cast<std::int64_t>(place.change)));
  return SetState(tx_, "began", static_cast<std::int64_t>(place.began));
}

base::Status HistoryWriter::Clear() {
  for (const char* table :
       {"run", "bundle_place", "bundle_file", "captured", "redacted_file", "bundle", "place"}) {
    EXPANSE_RETURN_IF_ERROR(tx_.Execute(std::string("DELETE FROM ") + table));
  }
  return SetPlace({});
}

base::Result<std::int64_t> HistoryWriter::PlaceOf(const std::string& organisation_id,
                                                  const std::string& compute_id) {
  const auto [at, is_new] = places_.try_emplace({organisation_id, compute_id}, 0);
  if (!is_new) return at->second;
  EXPANSE_ASSIGN_OR_RETURN(auto id,
                           tx_.QueryInt("SELECT place_id FROM place WHERE organisation_id = "
                                        ":organisation AND compute_id = :compute",
                                        {organisation_id, compute_id}));
  if (!id) {
    EXPANSE_ASSIGN_OR_RETURN(const auto last, tx_.QueryInt("SELECT MAX(place_id) FROM place"));
    id = last.value_or(0) + 1;
    EXPANSE_RETURN_IF_ERROR(
        tx_.Execute("INSERT INTO place (place_id, organisation_id, compute_id) VALUES (:id, "
                    ":organisation, :compute)",
                    {*id, organisation_id, compute_id}));
  }
  at->second = *id;
  return *id;
}

base::Result<std::optional<std::int64_t>> HistoryWriter::CapturedAs(
    const std::string& organisation_id, const std::string& bundle_hash) {
  const auto [at, is_new] = captured_.try_emplace({organisation_id, bundle_hash});
  if (is_new) {
    EXPANSE_ASSIGN_OR_RETURN(at->second,
                             tx_.QueryInt("SELECT bundle_id FROM captured WHERE organisation_id = "
                                          ":organisation AND bundle_hash = :hash",
                                          {organisation_id, bundle_hash}));
  }
  return at->second;
}

base::Status HistoryWriter::InsertBundle(std::int64_t bundle_id, const CapturedBundle& bundle) {
  const Fingerprint& print = bundle.fingerprint;
  EXPANSE_RETURN_IF_ERROR(tx_.Execute(
      "INSERT INTO bundle (bundle_id, organisation_id, bundle_key, entry_hash, shape_hash, numbers,"
      " signature) VALUES (:id, :organisation, :key, :entry, :shape, :numbers, :signature)",
      {bundle_id, bundle.organisation_id, print.bundle_key, EntryHash(print), print.shape_hash,
       Bytes{BytesOf(print.numbers)}, Bytes{BytesOf(print.signature)}}));
  std::set<std::string> hashes;
  for (const FilePrint& file : print.files) {
    if (file.is_source && !file.normalised_hash.empty()) hashes.insert(file.normalised_hash);
  }
  for (const std::string& hash : hashes) {
    EXPANSE_RETURN_IF_ERROR(
        tx_.Execute("INSERT INTO bundle_file (bundle_id, organisation_id, normalised_hash) VALUES "
                    "(:id, :organisation, :hash)",
                    {bundle_id, bundle.organisation_id, hash}));
  }
  changes_.push_back({.organisation_id = bundle.organisation_id,
                      .bundle_id = bundle_id,
                      .signature = print.signature});
  return {};
}

base::Result<std::int64_t> HistoryWriter::BundleFor(const CapturedBundle& bundle) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto known,
      tx_.QueryInt(
          "SELECT bundle_id FROM bundle WHERE organisation_id = :organisation AND "
          "bundle_key = :key AND entry_hash = :entry",
          {bundle.organisation_id, bundle.fingerprint.bundle_key, EntryHash(bundle.fingerprint)}));
  if (known) return *known;
  // Never used again, also not after a removal: memory may still hold an old one.
  EXPANSE_ASSIGN_OR_RETURN(const std::int64_t last, ReadState(tx_, "next_bundle"));
  EXPANSE_RETURN_IF_ERROR(SetState(tx_, "next_bundle", last + 1));
  EXPANSE_RETURN_IF_ERROR(InsertBundle(last + 1, bundle));
  return last + 1;
}

// Runs that were told before the source they share.
base::Status HistoryWriter::GiveWanted(const CapturedBundle& bundle, std::int64_t bundle_id) {
  std::vector<std::pair<std::string, std::int64_t>> waiting;
  EXPANSE_RETURN_IF_ERROR(tx_.Query(
      "SELECT run.execution_id, run.place_id FROM run JOIN place ON place.place_id = run.place_id "
      "WHERE run.wanted = :wanted AND place.organisation_id = :organisation",
      {bundle.bundle_hash, bundle.organisation_id}, {Column::kText, Column::kInt},
      [&](const Row& row) { waiting.emplace_back(row.Text(0), row.Int(1)); }));
  for (const auto& [execution_id, place_id] : waiting) {
    EXPANSE_RETURN_IF_ERROR(
        tx_.Execute("UPDATE run SET wanted = NULL, bundle_id = :bundle WHERE execution_id = :id",
                    {bundle_id, execution_id}));
    EXPANSE_RETURN_IF_ERROR(NotePlace(bundle_id, place_id));
  }
  return {};
}

base::Status HistoryWriter::AddBundle(const CapturedBundle& bundle) {
  EXPANSE_ASSIGN_OR_RETURN(const auto known,
                           CapturedAs(bundle.organisation_id, bundle.bundle_hash));
  if (known) return {};
  std::int64_t bundle_id = kNoSource;
  if (!bundle.fingerprint.bundle_key.empty()) {
    EXPANSE_ASSIGN_OR_RETURN(bundle_id, BundleFor(bundle));
  }
  EXPANSE_RETURN_IF_ERROR(
      tx_.Execute("INSERT INTO captured (organisation_id, bundle_hash, bundle_id) VALUES "
                  "(:organisation, :hash, :bundle)",
                  {bundle.organisation_id, bundle.bundle_hash, bundle_id}));
  captured_[{bundle.organisation_id, bundle.bundle_hash}] = bundle_id;
  for (const auto& [content_hash, normalised_hash] : bundle.redacted) {
    EXPANSE_RETURN_IF_ERROR(tx_.Execute(
        "INSERT INTO redacted_file (organisation_id, content_hash, normalised_hash) VALUES "
        "(:organisation, :content, :normalised) ON CONFLICT (organisation_id, content_hash) DO "
        "UPDATE SET normalised_hash = excluded.normalised_hash",
        {bundle.organisation_id, content_hash, normalised_hash}));
  }
  return bundle_id == kNoSource ? base::Status() : GiveWanted(bundle, bundle_id);
}

base::Status HistoryWriter::NotePlace(std::int64_t bundle_id, std::int64_t place_id) {
  if (!bundle_places_.emplace(bundle_id, place_id).second) return {};
  EXPANSE_RETURN_IF_ERROR(
      tx_.Execute("INSERT INTO bundle_place (bundle_id, place_id) VALUES (:bundle, :place) ON "
                  "CONFLICT (bundle_id, place_id) DO NOTHING",
                  {bundle_id, place_id}));
  return {};
}

// Remembers the bundle that an execution had, unless it keeps it.
base::Status HistoryWriter::NoteLoss(const std::string& execution_id,
                                     std::optional<std::int64_t> kept) {
  EXPANSE_ASSIGN_OR_RETURN(
      const auto had,
      tx_.QueryInt("SELECT bundle_id FROM run WHERE execution_id = :id", {execution_id}));
  if (had && had != kept) lost_a_run_.insert(*had);
  return {};
}

base::Status HistoryWriter::Apply(const RunChange& change) {
  if (!change.run) {
    EXPANSE_RETURN_IF_ERROR(NoteLoss(change.execution_id, std::nullopt));
    EXPANSE_RETURN_IF_ERROR(
        tx_.Execute("DELETE FROM run WHERE execution_id = :id", {change.execution_id}));
    return {};
  }
  const IndexedRun& run = *change.run;
  EXPANSE_ASSIGN_OR_RETURN(const std::int64_t place,
                           PlaceOf(change.organisation_id, run.compute_id));
  std::optional<std::int64_t> bundle;
  std::optional<std::string> wanted;
  if (!change.bundle_hash.empty()) {
    EXPANSE_ASSIGN_OR_RETURN(bundle, CapturedAs(change.organisation_id, change.bundle_hash));
    if (!bundle) wanted = change.bundle_hash;
    if (bundle == kNoSource) bundle.reset();
  }
  EXPANSE_RETURN_IF_ERROR(NoteLoss(change.execution_id, bundle));
  const std::optional<std::int64_t> name_key = run.user.empty() || run.job_name.empty()
                                                   ? std::nullopt
                                                   : std::optional(NameKey(run.user, run.job_name));
  const std::string detail = EncodeRun(run);
  EXPANSE_RETURN_IF_ERROR(tx_.Execute(
      "INSERT INTO run (execution_id, place_id, bundle_id, arguments_key, name_key, owner_key, "
      "wanted, submitted_at, settle_at, detail) VALUES (:id, :place, :bundle, :arguments, :name, "
      ":owner, :wanted, :submitted, :settle, :detail)"
      " ON CONFLICT (execution_id) DO UPDATE SET place_id = excluded.place_id,"
      " bundle_id = excluded.bundle_id, arguments_key = excluded.arguments_key,"
      " name_key = excluded.name_key, owner_key = excluded.owner_key, wanted = excluded.wanted,"
      " submitted_at = excluded.submitted_at, settle_at = excluded.settle_at,"
      " detail = excluded.detail",
      {change.execution_id, place, bundle, TextKey(run.arguments_hash), name_key,
       KeyOrNone(run.owner), wanted, run.run.submitted_micros, change.settle_at, Bytes{detail}}));
  return bundle ? NotePlace(*bundle, place) : base::Status();
}

base::Status HistoryWriter::DropUnused() {
  EXPANSE_RETURN_IF_ERROR(
      tx_.Query("SELECT bundle_id FROM bundle WHERE NOT EXISTS (SELECT 1 FROM run WHERE "
                "run.bundle_id = bundle.bundle_id)",
                {}, {Column::kInt}, [&](const Row& row) { lost_a_run_.insert(row.Int(0)); }));
  return Finish();
}

base::Status HistoryWriter::Settle(const std::string& execution_id,
                                   const std::optional<IndexedRun>& run,
                                   const std::optional<base::WallTime>& next) {
  if (run) {
    const std::string detail = EncodeRun(*run);
    EXPANSE_RETURN_IF_ERROR(tx_.Execute("UPDATE run SET detail = :detail WHERE execution_id = :id",
                                        {Bytes{detail}, execution_id}));
  }
  EXPANSE_RETURN_IF_ERROR(tx_.Execute("UPDATE run SET settle_at = :next WHERE execution_id = :id",
                                      {next, execution_id}));
  return {};
}

base::Status HistoryWriter::Finish() {
  for (const std::int64_t bundle_id : lost_a_run_) {
    EXPANSE_ASSIGN_OR_RETURN(
        const auto used,
        tx_.QueryInt("SELECT 1 FROM run WHERE bundle_id = :bundle LIMIT 1", {bundle_id}));
    if (used) continue;
    std::string organisation_id;
    EXPANSE_RETURN_IF_ERROR(
        tx_.Query("SELECT organisation_id FROM bundle WHERE bundle_id = :bundle", {bundle_id},
                  {Column::kText}, [&](const Row& row) { organisation_id = row.Text(0); }));
    for (const char* table : {"bundle_file", "bundle_place", "captured", "bundle"}) {
      EXPANSE_RETURN_IF_ERROR(tx_.Execute(
          std::string("DELETE FROM ") + table + " WHERE bundle_id = :bundle", {bundle_id}));
    }
    changes_.push_back(
        {.organisation_id = organisation_id, .bundle_id = bundle_id, .removed = true});
  }
  lost_a_run_.clear();
  return {};
}

}  // namespace expanse::intelligence::history
