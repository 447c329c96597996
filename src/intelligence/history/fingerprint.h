// What a workload's source is, so that its runs are recognised again: hashes of normalised files,
// the key of the bundle they make, and a MinHash signature for "nearly the same". Pure functions
// over bytes; cost linear in the text (figures in docs/prediction.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace expanse::intelligence::history {

// The algorithm below. Stored fingerprints of another version are made again.
inline constexpr int kFingerprintVersion = 1;

// A file as it was captured or as a user sends it. Views must outlive the call only.
struct SourceText {
  std::string_view path;
  std::string_view role;  // "script", "argument", "import", as in a source bundle
  std::string_view data;
  // SHA-256 in hex of the bytes before secrets were taken out; empty: that of `data`.
  std::string_view content_hash = {};
};

struct FilePrint {
  std::string path;
  std::string role;
  std::string content_hash;     // of the bytes as they are, 64 hex digits
  std::string normalised_hash;  // of NormaliseSource, 32 hex digits; empty: nothing is left
  // False: input rather than source (a file of no known language that is not the script); it counts
  // neither for the key nor for the signature.
  bool is_source = true;
  bool operator==(const FilePrint&) const = default;
};

// MinHash values; two signatures agree in a share of places that estimates the Jaccard similarity
// of the shingle sets. Empty for a text without tokens.
using Signature = std::vector<std::uint32_t>;

struct Fingerprint {
  // Over the sorted normalised hashes of the source files: the same source in whatever folder.
  // Empty: no source.
  std::string bundle_key;
  std::size_t entry = 0;  // index of the file that was submitted
  std::vector<FilePrint> files;
  Signature signature;
  // Of the entry file with its numbers masked, and these numbers in order (the first kMaxNumbers):
  // runs that differ in one number only tell what it does.
  std::string shape_hash;
  std::vector<double> numbers;
  bool operator==(const Fingerprint&) const = default;
};

inline constexpr std::size_t kMaxNumbers = 64;

// The entry is `entry`; of bundles the daemon made it is the first with role "script", else the
// first.
Fingerprint MakeFingerprint(std::span<const SourceText> files, std::size_t entry);
std::size_t EntryOf(std::span<const SourceText> files);
// The key of a bundle of these files.
std::string BundleKey(std::span<const FilePrint> files);

// The text without what does not change what runs: scheduler directives and resource options,
// resource blocks of manifests, comments, blank lines, trailing spaces, line endings, names of
// output files. Idempotent. Any bytes; a file it knows no comments of loses only blank lines.
std::string NormaliseSource(std::string_view path, std::string_view data);

// Estimated Jaccard similarity, 0 to 1; 0 when either is empty.
double Similarity(const Signature& a, const Signature& b);

// What a run was started with. The words after the script, output names taken out.
struct ArgumentsPrint {
  std::string hash;   // empty words: the hash of nothing, the same for all
  std::string shape;  // with numbers masked
  std::vector<double> numbers;
  bool operator==(const ArgumentsPrint&) const = default;
};
ArgumentsPrint MakeArgumentsPrint(std::span<const std::string> words);

// One spelling for the owner of a workload: "Deployment/shop/cart", "nomad/etl/load".
std::string OwnerName(std::string_view kind, std::string_view name_space, std::string_view name);

}  // namespace expanse::intelligence::history
