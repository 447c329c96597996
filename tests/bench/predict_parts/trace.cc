#include "bench/predict_parts/trace.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/compress.h"
#include "base/files.h"
#include "base/text.h"
#include "bench/predict_parts/fields.h"

namespace expanse::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestFile = std::size_t{1} << 30;

base::Result<std::string> ReadText(const fs::path& path) {
  EXPANSE_ASSIGN_OR_RETURN(std::string text, base::ReadFile(path.string(), kLargestFile));
  if (path.extension() == ".gz") return base::GzipDecompress(text, kLargestFile);
  return text;
}

Runs ReadAny(std::string_view text, const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.ends_with(".swf") || name.ends_with(".swf.gz")) return ReadSwf(text);
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && text[start] == '{') {
    if (Runs runs = ReadWfInstance(text)) return runs;
    return ReadSacctJson(text);
  }
  for (const auto reader : {ReadSlurmEvents, ReadNextflow, ReadSnakemake, ReadSpark, ReadJobTable,
                            ReadMeasuredTable, ReadSacct}) {
    if (Runs runs = reader(text)) return runs;
  }
  return std::nullopt;
}

// Files without times keep their order: each run ends before the next one is submitted.
void PutInOrder(std::vector<TraceRun>& runs) {
  const bool timed =
      std::ranges::any_of(runs, [](const TraceRun& run) { return run.submit_s > 0; });
  if (!timed) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].submit_s = static_cast<double>(i);
      runs[i].end_s = static_cast<double>(i) + 0.5;
    }
  }
  std::ranges::stable_sort(runs, {}, &TraceRun::submit_s);
}

// A folder of small files is one trace: k-segments/eager, slurm/sarc.
std::string TraceOf(const fs::path& relative) {
  const std::string text = relative.generic_string();
  const auto pieces = base::Split(text, '/');
  if (pieces.size() >= 3 && (pieces[0] == "k-segments" || pieces[1] == "sarc"))
    return std::string(pieces[0]) + "/" + std::string(pieces[1]);
  return text;
}

class Reader {
 public:
  explicit Reader(fs::path folder) : folder_(std::move(folder)) {}

  void Read(const fs::path& relative) {
    const std::string name = relative.filename().string();
    if (name.ends_with("_metadata.csv")) return;  // read with its memory series
    auto text = ReadText(folder_ / relative);
    if (!text) return Skip(relative, text.error().message);
    if (name.ends_with("_memory.csv")) return ReadSeries(relative, *text);
    Runs runs = ReadAny(*text, relative);
    if (!runs) return Skip(relative, "not a job history that is known here");
    if (runs->empty()) return Skip(relative, "no run that ended");
    auto& all = traces_[TraceOf(relative)];
    std::ranges::move(*runs, std::back_inserter(all));
  }

  Traces Finish() {
    Traces result;
    for (auto& [name, runs] : traces_) {
      PutInOrder(runs);
      result.traces.push_back({name, std::move(runs)});
    }
    result.skipped = std::move(skipped_);
    return result;
  }

 private:
  void ReadSeries(const fs::path& relative, std::string_view memory) {
    std::string other = relative.string();
    other.replace(other.size() - std::string_view("memory.csv").size(), std::string::npos,
                  "metadata.csv");
    const auto metadata = ReadText(folder_ / other);
    auto run = ReadMemorySeries(memory, metadata ? std::string_view(*metadata) : "");
    if (!run) return Skip(relative, "not a memory series");
    run->group = relative.parent_path().filename().string();
    traces_[TraceOf(relative)].push_back(std::move(*run));
  }
  void Skip(const fs::path& relative, std::string_view why) {
    skipped_.push_back(relative.generic_string() + ": " + std::string(why));
  }

  fs::path folder_;
  std::map<std::string, std::vector<TraceRun>> traces_;
  std::vector<std::string> skipped_;
};

std::vector<fs::path> FilesUnder(const fs::path& folder, const fs::path& relative) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder / relative, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file(error)) files.push_back(fs::relative(it->path(), folder, error));
  }
  std::ranges::sort(files);
  return files;
}

// Paths that index.csv names, or every file where there is none.
std::vector<fs::path> ListFiles(const fs::path& folder) {
  const auto index = base::ReadFile((folder / "index.csv").string(), kLargestFile);
  if (!index) return FilesUnder(folder, ".");
  const Table table(*index, ',');
  std::set<fs::path> files;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    std::string_view file = table.At(i, "file");
    if (file.empty()) continue;
    if (const auto mark = file.find(" (directory)"); mark != std::string_view::npos)
      file = file.substr(0, mark);
    std::error_code error;
    if (fs::is_directory(folder / file, error)) {
      for (fs::path& path : FilesUnder(folder, file)) files.insert(std::move(path));
    } else {
      files.insert(fs::path(file).lexically_normal());
    }
  }
  return {files.begin(), files.end()};
}

}  // namespace

base::Result<Traces> ReadTraces(const std::filesystem::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return base::Fail(base::Code::kNotFound, "traces.no_folder",
                      folder.string() + " is not a folder");
  Reader reader(folder);
  for (const fs::path& file : ListFiles(folder)) reader.Read(file);
  return reader.Finish();
}

}  // namespace expanse::bench
