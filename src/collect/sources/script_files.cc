#include "collect/sources/script_files.h"

#include <algorithm>
#include <span>

#include "base/files.h"
#include "base/text.h"

namespace expanse::collect {
namespace {

constexpr std::size_t kMaxWords = 1024;  // of one command
constexpr std::size_t kMaxName = 1024;

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool OneOf(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Programs that start another one, named among their arguments.
bool IsLauncher(std::string_view program) {
  static constexpr std::string_view kNames[] = {
      "srun",      "mpirun",     "mpiexec",     "orterun",   "torchrun", "accelerate",
      "deepspeed", "horovodrun", "singularity", "apptainer", "podman",   "docker",
      "enroot",    "pixi",       "poetry",      "uv",        "conda",    "micromamba"};
  return OneOf(kNames, BaseName(program));
}

bool IsName(char c) {
  return c == '_' || base::IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Splits a script into commands of words, quotes taken off.
class Reader {
 public:
  Reader(std::string_view text, std::string_view directory) : text_(text), directory_(directory) {}

  // The next command that has words; empty at the end.
  std::vector<std::string> Next() {
    words_.clear();
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2;  // the line goes on
      } else if (c == '<' || (base::IsSpace(c) && c != '\n')) {
        ++at_;  // what stands behind `<` is read: one of the command's files
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '>') {
        SkipRedirection();
      } else if (IsEnd(c)) {
        ++at_;
        if (!words_.empty()) break;
      } else {
        Word();
      }
    }
    return std::move(words_);
  }

 private:
  static bool IsEnd(char c) {
    return c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '`';
  }

  // What is written to is no source.
  void SkipRedirection() {
    while (at_ < text_.size() && (text_[at_] == '>' || text_[at_] == '&' || text_[at_] == '|'))
      ++at_;
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    const std::size_t words = words_.size();
    if (at_ < text_.size() && !IsEnd(text_[at_])) Word();
    words_.resize(std::min(words, words_.size()));
  }

  // One word; what cannot be known without a shell makes it "".
  void Word() {
    std::string word;
    bool known = true;
    char quote = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote == 0 && (base::IsSpace(c) || IsEnd(c) || c == '<' || c == '>')) break;
      if (quote != 0 && c == quote) {
        quote = 0;
      } else if (quote == 0 && (c == '\'' || c == '"')) {
        quote = c;
      } else if (c == '\\' && quote != '\'' && at_ + 1 < text_.size()) {
        ++at_;
        if (text_[at_] != '\n') word += text_[at_];
      } else if (c == '$' && quote != '\'') {
        known = Variable(word) && known;
      } else {
        known =
            known && (quote != 0 || std::string_view("*?[]{}").find(c) == std::string_view::npos);
        word += c;
      }
    }
    if (word.size() > kMaxName || !known) word.clear();
    if (words_.size() < kMaxWords) words_.push_back(std::move(word));
  }

  // Leaves at_ on the variable's last byte. False: not one whose value is known.
  bool Variable(std::string& word) {
    std::size_t begin = at_ + 1;
    const bool braced = begin < text_.size() && text_[begin] == '{';
    if (braced) ++begin;
    std::size_t end = begin;
    while (end < text_.size() && IsName(text_[end])) ++end;
    const std::string_view name = text_.substr(begin, end - begin);
    if (braced && (end >= text_.size() || text_[end] != '}')) return false;
    const bool known = name == "SLURM_SUBMIT_DIR" || name == "PWD";
    if (known) word += directory_;
    if (!name.empty()) at_ = braced ? end : end - 1;
    return known;
  }

  std::string_view text_;
  std::string_view directory_;
  std::size_t at_ = 0;
  std::vector<std::string> words_;
};

class Finder {
 public:
  void Command(std::span<const std::string> words) {
    while (!words.empty() && IsPrefix(words.front())) words = words.subspan(1);
    if (words.empty()) return;
    const std::string_view first = words.front();
    if (first == "cd") {
      if (words.size() == 2) Enter(words[1]);
    } else if (first == "source" || first == ".") {
      if (words.size() > 1) Add(words[1], /*is_script=*/true);
    } else if (IsInterpreter(first) || IsLauncher(first) || first.find('/') != first.npos) {
      Run(words);
    }
  }
  std::vector<ScriptFile> Finish() && { return std::move(files_); }

 private:
  // Words in front of a command: keywords, VAR=value, wrappers without arguments of their own.
  static bool IsPrefix(std::string_view word) {
    static constexpr std::string_view kWords[] = {"exec", "time", "nohup", "env",  "command", "if",
                                                  "then", "else", "do",    "elif", "while",   "!"};
    if (OneOf(kWords, word)) return true;
    std::size_t end = 0;
    while (end < word.size() && IsName(word[end])) ++end;
    return end > 0 && end < word.size() && word[end] == '=';
  }

  void Run(std::span<const std::string> words) {
    bool script_next = true;  // the program itself
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string_view word = words[i];
      if (word.starts_with('-')) {
        const std::size_t equals = word.find('=');
        if (equals != word.npos) Add(word.substr(equals + 1), /*is_script=*/false);
        if (script_next && (word == "-m" || word == "-c")) {
          ++i;  // a module's name or the program text itself
          script_next = false;
        }
      } else if (IsInterpreter(word) || IsLauncher(word)) {
        script_next = true;
      } else {
        const bool run = script_next || word.starts_with("./") || word.starts_with("../");
        if (Add(word, run) && run) script_next = false;
      }
    }
  }

  void Enter(std::string_view directory) {
    if (directory.empty() || directory == "-" || directory.front() == '~') return;
    if (directory.find('\0') != directory.npos) return;
    directory_ = directory.front() == '/' ? std::string(directory) : Join(directory_, directory);
    if (directory_.size() > kMaxName) directory_.clear();
  }

  static std::string Join(const std::string& directory, std::string_view name) {
    return directory.empty() ? std::string(name) : base::JoinPath(directory, name);
  }

  // False: it does not look like the name of a file.
  bool Add(std::string_view name, bool is_script) {
    if (name.find_first_of("./") == name.npos || name.find_first_not_of("./") == name.npos)
      return false;
    if (name.front() == '~' || name.find('\0') != name.npos || base::ParseDouble(name))
      return false;
    const bool system = name.starts_with("/usr/") || name.starts_with("/bin/") ||
                        name.starts_with("/opt/") || name.starts_with("/dev/");
    if (system) return false;
    std::string path = name.front() == '/' ? std::string(name) : Join(directory_, name);
    const bool known = std::any_of(files_.begin(), files_.end(),
                                   [&](const ScriptFile& file) { return file.path == path; });
    if (!known && files_.size() < kMaxScriptFiles) files_.push_back({std::move(path), is_script});
    return true;
  }

  std::string directory_;
  std::vector<ScriptFile> files_;
};

}  // namespace

bool IsInterpreter(std::string_view program) {
  static constexpr std::string_view kNames[] = {"python",  "pypy",  "bash", "sh",   "dash",
                                                "zsh",     "ksh",   "fish", "perl", "ruby",
                                                "Rscript", "julia", "node", "lua",  "php"};
  std::string_view name = BaseName(program);
  while (!name.empty() && (base::IsDigit(name.back()) || name.back() == '.')) name.remove_suffix(1);
  return OneOf(kNames, name);
}

std::vector<ScriptFile> FindScriptFiles(std::string_view script, std::string_view directory) {
  Reader reader(script, directory);
  Finder finder;
  for (auto words = reader.Next(); !words.empty(); words = reader.Next()) finder.Command(words);
  return std::move(finder).Finish();
}

}  // namespace expanse::collect
