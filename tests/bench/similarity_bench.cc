// Where "similar source" begins: the similarity of scripts to edits of themselves, and to other
// scripts, for several lengths of shingles; how often a threshold takes the first and the second;
// how far MinHash estimates are off, and what the bands miss. The table in docs/prediction.md.
//
//   similarity_bench DIR...      every file below that is text
//
// Two files of one origin (the name up to "__", else the folder) are not taken for different
// scripts: such are often edits of each other.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "bench/bench_report.h"
#include "intelligence/history/fingerprint.h"
#include "intelligence/history/shingles.h"
#include "intelligence/history/similarity_index.h"

namespace expanse {
namespace {

using namespace intelligence::history;

struct Script {
  std::string path;
  std::string origin;
  std::string text;
};

constexpr std::size_t kFewestLines = 5;  // after normalisation; what is shorter tells nothing

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string_view line : base::Split(text, '\n')) lines.emplace_back(line);
  return lines;
}

std::vector<Script> ReadScripts(const std::vector<std::string>& folders) {
  std::vector<Script> scripts;
  for (const std::string& folder : folders) {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
      const auto text = base::ReadFile(path.string());
      if (!text || text->find('\0') != std::string::npos || text->size() > (256U << 10)) continue;
      if (Lines(NormaliseSource(path.string(), *text)).size() < kFewestLines) continue;
      const std::string name = path.filename().string();
      const std::size_t end = name.find("__");
      scripts.push_back(
          {.path = path.string(),
           .origin = end == std::string::npos ? path.parent_path().string() : name.substr(0, end),
           .text = *text});
    }
  }
  return scripts;
}

// ---- edits, as people make them

bool IsName(const std::string& token) {
  return token.size() >= 3 && !base::IsDigit(token[0]) &&
         std::all_of(token.begin(), token.end(), [](char c) {
           return base::IsDigit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
         });
}

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    const bool part =
        base::IsDigit(c) || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!part || words.back().empty() ||
        !(base::IsDigit(words.back()[0]) || words.back()[0] == '_' ||
          std::isalpha(static_cast<unsigned char>(words.back()[0])))) {
      words.emplace_back();
    }
    words.back() += c;
  }
  return words;
}

// Every use of each of the `count` names that a few lines assign to gets another name.
std::string Rename(const std::string& text, std::size_t count, std::mt19937_64& random) {
  const std::vector<std::string> words = Words(text);
  std::map<std::string, std::size_t> assigned;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    std::size_t next = i + 1;
    while (next < words.size() && words[next] == " ") ++next;
    if (IsName(words[i]) && next < words.size() && words[next] == "=") ++assigned[words[i]];
  }
  std::vector<std::string> names;
  for (const auto& [name, uses] : assigned) names.push_back(name);
  std::shuffle(names.begin(), names.end(), random);
  names.resize(std::min(count, names.size()));
  std::string out;
  for (const std::string& word : words) {
    const bool renamed = std::ranges::find(names, word) != names.end();
    out += renamed ? word + "_renamed" : word;
  }
  return out;
}

// A share of the lines (at least one) replaced, dropped or followed by a new one.
std::string EditLines(const std::string& text, double share, std::mt19937_64& random) {
  std::vector<std::string> lines = Lines(text);
  std::vector<std::size_t> at(lines.size());
  for (std::size_t i = 0; i < at.size(); ++i) at[i] = i;
  std::shuffle(at.begin(), at.end(), random);
  const auto count = std::max<std::size_t>(
      1, static_cast<std::size_t>(std::lround(share * static_cast<double>(lines.size()))));
  for (std::size_t k = 0; k < count && k < at.size(); ++k) {
    std::string& line = lines[at[k]];
    const std::string fresh = "new" + std::to_string(random() % 1000) + " --with other" +
                              std::to_string(random() % 1000) + " things";
    switch (random() % 3) {
      case 0:
        line = fresh;
        break;
      case 1:
        line.clear();
        break;
      default:
        line += "\n" + fresh;
    }
  }
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

// Another value in one place: the last word of one line.
std::string ChangeValue(const std::string& text, std::mt19937_64& random) {
  std::vector<std::string> lines = Lines(text);
  for (int tries = 0; tries < 20; ++tries) {
    std::string& line = lines[random() % lines.size()];
    const std::size_t space = line.rfind(' ');
    if (line.empty() || space == std::string::npos || line[0] == '#') continue;
    line.resize(space + 1);
    line += "value" + std::to_string(random() % 1000);
    break;
  }
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

// ---- measures

std::vector<std::uint64_t> Shingles(const Script& script, const std::string& text, std::size_t k) {
  ShingleSet set(k);
  set.Add(NormaliseSource(script.path, text));
  return set.Take();
}

struct Class {
  std::string name;
  std::vector<double> exact;      // Jaccard
  std::vector<double> estimated;  // by MinHash
  std::size_t near = 0;           // estimated as similar enough
  std::size_t missed = 0;         // of these: not compared, as no band is equal
};

void AddPair(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b, Class* to) {
  to->exact.push_back(Jaccard(a, b));
  const Signature mine = MinHash(a);
  const Signature other = MinHash(b);
  to->estimated.push_back(Similarity(mine, other));
  if (to->estimated.back() < kSimilarEnough) return;
  SimilarityIndex index;
  index.Put(1, mine);
  ++to->near;
  to->missed += 1 - index.Find(other, 0, 1).size();
}

std::vector<Class> MeasurePairs(const std::vector<Script>& scripts, std::size_t k) {
  std::vector<Class> classes = {{.name = "one value changed"},
                                {.name = "a line in ten edited"},
                                {.name = "three names replaced"},
                                {.name = "a line in four edited"},
                                {.name = "all names replaced"},
                                {.name = "a line in two edited"},
                                {.name = "another script of that origin"},
                                {.name = "another script"}};
  std::mt19937_64 random(7);
  for (const Script& script : scripts) {
    const auto own = Shingles(script, script.text, k);
    const std::string edits[] = {
        ChangeValue(script.text, random),  EditLines(script.text, 0.1, random),
        Rename(script.text, 3, random),    EditLines(script.text, 0.25, random),
        Rename(script.text, 1000, random), EditLines(script.text, 0.5, random)};
    for (std::size_t i = 0; i < std::size(edits); ++i)
      AddPair(own, Shingles(script, edits[i], k), &classes[i]);
    for (int other = 0; other < 20; ++other) {
      const Script& another = scripts[random() % scripts.size()];
      if (another.origin != script.origin)
        AddPair(own, Shingles(another, another.text, k), &classes.back());
    }
    for (const Script& another : scripts) {
      if (another.origin == script.origin && another.path > script.path)
        AddPair(own, Shingles(another, another.text, k), &classes[classes.size() - 2]);
    }
  }
  return classes;
}

double Share(const std::vector<double>& values, double at_least) {
  if (values.empty()) return 0;
  const auto count = std::ranges::count_if(values, [&](double v) { return v >= at_least; });
  return 100 * static_cast<double>(count) / static_cast<double>(values.size());
}

constexpr double kThresholds[] = {0.3, 0.4, 0.5, 0.6, 0.7};

void PrintTable(std::vector<Class>& classes, std::size_t k) {
  std::printf("\nshingles of %zu tokens\n", k);
  std::printf("| pair | pairs | p5 | median | p95 |");
  for (const double threshold : kThresholds) std::printf(" >= %.1f |", threshold);
  std::printf(" estimate off by (rms) | missed by the bands |\n");
  std::printf("| --- | --- | --- | --- | --- |");
  for (std::size_t i = 0; i < std::size(kThresholds); ++i) std::printf(" --- |");
  std::printf(" --- | --- |\n");
  for (Class& measured : classes) {
    double squares = 0;
    for (std::size_t i = 0; i < measured.exact.size(); ++i)
      squares += std::pow(measured.exact[i] - measured.estimated[i], 2);
    const auto pairs = static_cast<double>(std::max<std::size_t>(measured.exact.size(), 1));
    std::printf("| %s | %zu |", measured.name.c_str(), measured.exact.size());
    for (const double q : {0.05, 0.5, 0.95})
      std::printf(" %.2f |", bench::Quantile(measured.exact, q));
    for (const double threshold : kThresholds)
      std::printf(" %.1f %% |", Share(measured.estimated, threshold));
    std::printf(" %.3f | %.1f %% |\n", std::sqrt(squares / pairs),
                100 * static_cast<double>(measured.missed) /
                    static_cast<double>(std::max<std::size_t>(measured.near, 1)));
  }
}

int Bench(const std::vector<std::string>& folders) {
  const std::vector<Script> scripts = ReadScripts(folders);
  std::set<std::string> origins;
  for (const Script& script : scripts) origins.insert(script.origin);
  std::printf("%zu scripts of %zu origins, %zu permutations, bands of %zu\n", scripts.size(),
              origins.size(), kPermutations, kBandRows);
  if (scripts.empty()) {
    std::printf("skipped: no reference data\n");
    return 0;
  }
  for (const std::size_t k : {2, 3, 4, 5}) {
    std::vector<Class> classes = MeasurePairs(scripts, k);
    PrintTable(classes, k);
  }
  return 0;
}

}  // namespace
}  // namespace expanse

int main(int argc, char** argv) {
  std::vector<std::string> folders;
  CLI::App app("Similarity of edited and of different scripts");
  app.add_option("folders", folders, "folders with scripts")
      ->required()
      ->check(CLI::ExistingDirectory);
  CLI11_PARSE(app, argc, argv);
  return expanse::Bench(folders);
}
