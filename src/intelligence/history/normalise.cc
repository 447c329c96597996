#include "intelligence/history/normalise.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "intelligence/history/fingerprint.h"

namespace expanse::intelligence::history {
namespace {

// A text that has not settled after so many passes was made to do that; it is left as it is.
constexpr int kMaxPasses = 6;

struct Ending {
  std::string_view ending;
  Language language;
};
constexpr auto kEndings = std::to_array<Ending>({
    {".py", Language::kPython},   {".pyx", Language::kPython},  {".ipy", Language::kPython},
    {".sh", Language::kShell},    {".bash", Language::kShell},  {".zsh", Language::kShell},
    {".ksh", Language::kShell},   {".csh", Language::kShell},   {".sbatch", Language::kShell},
    {".slurm", Language::kShell}, {".slm", Language::kShell},   {".pbs", Language::kShell},
    {".job", Language::kShell},   {".batch", Language::kShell}, {".r", Language::kHash},
    {".pl", Language::kHash},     {".pm", Language::kHash},     {".rb", Language::kHash},
    {".jl", Language::kHash},     {".mk", Language::kHash},     {".cfg", Language::kHash},
    {".conf", Language::kHash},   {".toml", Language::kHash},   {".ini", Language::kHash},
    {".tcl", Language::kHash},    {".yaml", Language::kYaml},   {".yml", Language::kYaml},
    {".nomad", Language::kHcl},   {".hcl", Language::kHcl},     {".tf", Language::kHcl},
    {".json", Language::kJson},   {".c", Language::kSlash},     {".cc", Language::kSlash},
    {".cpp", Language::kSlash},   {".cxx", Language::kSlash},   {".h", Language::kSlash},
    {".hh", Language::kSlash},    {".hpp", Language::kSlash},   {".cu", Language::kSlash},
    {".cuh", Language::kSlash},   {".js", Language::kSlash},    {".ts", Language::kSlash},
    {".java", Language::kSlash},  {".go", Language::kSlash},    {".rs", Language::kSlash},
    {".scala", Language::kSlash}, {".kt", Language::kSlash},    {".sql", Language::kDash},
    {".lua", Language::kDash},    {".hs", Language::kDash},     {".f90", Language::kBang},
    {".f95", Language::kBang},    {".f03", Language::kBang},    {".f08", Language::kBang},
    {".m", Language::kPercent},
});

std::string_view FirstLine(std::string_view text) { return text.substr(0, text.find('\n')); }

Language OfInterpreter(std::string_view line) {
  for (const std::string_view word : base::SplitSpaces(line)) {
    const std::string_view name = word.substr(word.rfind('/') + 1);
    if (name.starts_with("python")) return Language::kPython;
    for (const std::string_view shell : {"sh", "bash", "dash", "zsh", "ksh", "csh", "tcsh"}) {
      if (name == shell || name == std::string("#!") + std::string(shell)) return Language::kShell;
    }
    for (const std::string_view other : {"Rscript", "perl", "ruby", "julia", "make", "tclsh"}) {
      if (name == other) return Language::kHash;
    }
  }
  return Language::kUnknown;
}

bool HasDirectives(std::string_view text) {
  for (const std::string_view directive : {"#SBATCH", "#PBS", "#BSUB"}) {
    const std::size_t at = text.find(directive);
    if (at != std::string_view::npos && (at == 0 || text[at - 1] == '\n')) return true;
  }
  return false;
}

bool IsManifest(std::string_view text) {
  return text.starts_with("apiVersion:") || text.find("\napiVersion:") != std::string_view::npos;
}

// Line endings as "\n", no white space at the ends of lines, no empty lines, no byte order mark.
std::string TidyLines(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (out.empty() && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    while (!line.empty() && base::IsSpace(line.back())) line.remove_suffix(1);
    if (line.empty()) continue;
    out += line;
    out += '\n';
  }
  return out;
}

std::string OnePass(Language language, std::string_view text) {
  switch (language) {
    case Language::kShell:
      return TidyLines(NormaliseShell(text));
    case Language::kPython:
      return TidyLines(StripPythonComments(text));
    case Language::kYaml: {
      const std::string stripped = TidyLines(StripComments(text, language));
      return IsManifest(stripped) ? TidyLines(StripYamlResources(stripped)) : stripped;
    }
    case Language::kHcl:
      return TidyLines(StripBracedResources(StripComments(text, language), language));
    case Language::kJson:
      return TidyLines(StripBracedResources(text, language));
    case Language::kHash:
    case Language::kSlash:
    case Language::kDash:
    case Language::kBang:
    case Language::kPercent:
      return TidyLines(StripComments(text, language));
    case Language::kUnknown:
      return std::string(text);
  }
  return std::string(text);
}

}  // namespace

Language LanguageOf(std::string_view path, std::string_view text) {
  const std::string name = base::ToLower(path.substr(path.rfind('/') + 1));
  if (name == "makefile" || name == "dockerfile") return Language::kHash;
  Language by_name = Language::kUnknown;
  for (const Ending& known : kEndings) {
    if (name.ends_with(known.ending)) by_name = known.language;
  }
  if (by_name != Language::kUnknown && by_name != Language::kShell) return by_name;
  // A batch script may be of any language, and schedulers know it by another name than its user.
  const std::string_view first = FirstLine(text);
  const Language by_line = first.starts_with("#!") ? OfInterpreter(first) : Language::kUnknown;
  if (by_line != Language::kUnknown) return by_line;
  return by_name == Language::kShell || HasDirectives(text) ? Language::kShell : Language::kUnknown;
}

std::string NormaliseSource(std::string_view path, std::string_view data) {
  std::string tidy = TidyLines(data);
  // What is looked at to tell the language must not change with it, hence the tidy text.
  const Language language = LanguageOf(path, tidy);
  std::string text = tidy;
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    std::string next = OnePass(language, text);
    if (next == text) return text;
    text = std::move(next);
  }
  return tidy;
}

}  // namespace expanse::intelligence::history
