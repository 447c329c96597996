#include "net/key_ring.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/files.h"
#include "base/text.h"

namespace expanse::net {
namespace {

using base::Code;
using base::Fail;
using base::Result;
using base::Status;

constexpr std::string_view kPrefix = "key-";
constexpr std::string_view kSuffix = ".pem";
constexpr std::size_t kMaxFile = 64U << 10;

// Refuses a file on which any bit of `forbidden` is set.
Status CheckMode(const std::string& path, mode_t forbidden, std::string_view advice) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return base::FailErrno(errno, "reading " + path);
  if ((info.st_mode & forbidden) == 0) return {};
  return Fail(Code::kFailedPrecondition, "token_keys.permissions",
              path + ": " + std::string(advice));
}

// The time in a file name, or nothing for a file that is not one of ours.
std::optional<base::WallTime> TimeOf(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  const auto micros = base::ParseUnsignedDigits(name);
  if (!micros) return std::nullopt;
  return base::FromMicros(static_cast<std::int64_t>(*micros));
}

}  // namespace

Result<std::unique_ptr<KeyRing>> KeyRing::Open(KeyRingOptions options, base::Clock& clock) {
  std::unique_ptr<KeyRing> ring(new KeyRing(std::move(options), clock));
  const bool mounted = !ring->options_.file.empty();
  EXPANSE_RETURN_IF_ERROR(mounted ? ring->LoadFile() : ring->LoadDirectory());
  EXPANSE_RETURN_IF_ERROR(ring->Maintain());
  return ring;
}

Status KeyRing::LoadFile() {
  EXPANSE_RETURN_IF_ERROR(CheckMode(options_.file, S_IWGRP | S_IWOTH,
                                    "others may write this signing key; chmod go-w it"));
  EXPANSE_ASSIGN_OR_RETURN(const std::string pem, base::ReadFile(options_.file, kMaxFile));
  EXPANSE_ASSIGN_OR_RETURN(std::vector<SigningKey> keys, ParseSigningKeys(pem));
  const std::lock_guard lock(mutex_);
  for (SigningKey& key : keys) keys_.push_back(std::make_shared<const SigningKey>(std::move(key)));
  PublishLocked();
  return {};
}

Status KeyRing::LoadDirectory() {
  EXPANSE_RETURN_IF_ERROR(base::MakeDirectories(options_.directory, 0700));
  EXPANSE_RETURN_IF_ERROR(
      CheckMode(options_.directory, S_IRWXG | S_IRWXO,
                "others may enter the directory of signing keys; chmod 0700 it"));
  EXPANSE_ASSIGN_OR_RETURN(const auto names, base::ListDirectory(options_.directory));
  const std::lock_guard lock(mutex_);
  for (const std::string& name : names) {
    const auto created = TimeOf(name);
    if (!created) continue;
    const std::string path = base::JoinPath(options_.directory, name);
    EXPANSE_RETURN_IF_ERROR(
        CheckMode(path, S_IRWXG | S_IRWXO, "others may read this signing key; chmod 0600 it"));
    EXPANSE_ASSIGN_OR_RETURN(const std::string pem, base::ReadFile(path, kMaxFile));
    auto keys = ParseSigningKeys(pem);
    if (!keys) return std::unexpected(std::move(keys).error().With(path));
    SigningKey key = std::move(keys->front());
    key.created_at = *created;
    keys_.push_back(std::make_shared<const SigningKey>(std::move(key)));
  }
  std::ranges::sort(keys_, {}, [](const auto& key) { return key->created_at; });
  PublishLocked();
  return {};
}

std::size_t KeyRing::SignerLocked(base::WallTime now) const {
  if (!options_.file.empty()) return 0;
  std::size_t signer = 0;
  for (std::size_t i = 1; i < keys_.size(); ++i) {
    if (keys_[i]->created_at + options_.publish_ahead <= now) signer = i;
  }
  return signer;
}

std::shared_ptr<const SigningKey> KeyRing::Current() const {
  const base::WallTime now = clock_.Now();
  const std::lock_guard lock(mutex_);
  return keys_[SignerLocked(now)];
}

std::shared_ptr<const PublicKeySet> KeyRing::Public() const {
  const std::lock_guard lock(mutex_);
  return public_;
}

std::string KeyRing::Jwks() const {
  const std::lock_guard lock(mutex_);
  return jwks_;
}

Status KeyRing::Maintain() {
  if (!options_.file.empty()) return {};
  const base::WallTime now = clock_.Now();
  const std::lock_guard lock(mutex_);
  if (keys_.empty() ||
      keys_.back()->created_at + options_.rotate_after - options_.publish_ahead <= now) {
    EXPANSE_RETURN_IF_ERROR(AddKeyLocked(now));
  }
  return DropOldLocked(now);
}

Status KeyRing::Rotate() {
  if (!options_.file.empty()) {
    return Fail(Code::kFailedPrecondition, "token_keys.mounted",
                "the signing keys come from " + options_.file + "; replace them there");
  }
  const std::lock_guard lock(mutex_);
  return AddKeyLocked(clock_.Now());
}

Status KeyRing::AddKeyLocked(base::WallTime now) {
  // Two keys of one microsecond would share a file name.
  if (!keys_.empty()) now = std::max(now, keys_.back()->created_at + std::chrono::microseconds(1));
  EXPANSE_ASSIGN_OR_RETURN(SigningKey key, GenerateSigningKey(now));
  EXPANSE_RETURN_IF_ERROR(base::WriteFileAtomically(PathOf(key), key.private_pem, 0600));
  keys_.push_back(std::make_shared<const SigningKey>(std::move(key)));
  PublishLocked();
  return {};
}

Status KeyRing::DropOldLocked(base::WallTime now) {
  // keys_[1] took over from keys_[0] when it began to sign; tokens from before then have expired.
  while (keys_.size() > 1 &&
         keys_[1]->created_at + options_.publish_ahead + options_.keep_after <= now) {
    EXPANSE_RETURN_IF_ERROR(base::RemoveFile(PathOf(*keys_.front())));
    keys_.erase(keys_.begin());
    PublishLocked();
  }
  return {};
}

void KeyRing::PublishLocked() {
  std::vector<SigningKey> keys;
  for (const auto& key : keys_) keys.push_back(*key);
  public_ = std::make_shared<const PublicKeySet>(PublicKeySet::FromSigningKeys(keys));
  jwks_ = ToJwks(keys);
}

std::string KeyRing::PathOf(const SigningKey& key) const {
  return base::JoinPath(
      options_.directory,
      std::string(kPrefix) + std::to_string(base::ToMicros(key.created_at)) + std::string(kSuffix));
}

}  // namespace expanse::net
