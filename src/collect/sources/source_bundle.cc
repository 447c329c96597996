#include "collect/sources/source_bundle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <set>

#include "base/crypto.h"
#include "base/files.h"
#include "base/text.h"
#include "collect/logs/redact.h"

namespace expanse::collect {
namespace {

constexpr std::size_t kMaxReferences = 64;

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view DirectoryOf(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// "python3.11", "bash", "Rscript": programs whose first argument is a script.
bool IsInterpreter(std::string_view program) {
  static constexpr std::string_view kNames[] = {"python",  "pypy",  "bash", "sh",   "dash",
                                                "zsh",     "ksh",   "fish", "perl", "ruby",
                                                "Rscript", "julia", "node", "lua",  "php"};
  std::string_view name = BaseName(program);
  while (!name.empty() && (base::IsDigit(name.back()) || name.back() == '.')) name.remove_suffix(1);
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Files whose whole purpose is to hold secrets; their text has no form that redaction could know.
bool IsSecretFile(std::string_view path) {
  static constexpr std::string_view kNames[] = {
      ".env",    ".netrc",     ".pgpass",          ".npmrc",       ".pypirc",   "credentials",
      "id_rsa",  "id_ed25519", "id_ecdsa",         "id_dsa",       "shadow",    "kubeconfig",
      ".my.cnf", ".htpasswd",  ".git-credentials", ".vault-token", ".dockercfg"};
  static constexpr std::string_view kDirectories[] = {"/.ssh/", "/.gnupg/", "/.kube/", "/.aws/",
                                                      "/.docker/"};
  static constexpr std::string_view kEndings[] = {".pem", ".key",  ".p12", ".pfx",
                                                  ".jks", ".kdbx", ".gpg", ".asc"};
  const std::string_view name = BaseName(path);
  if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) return true;
  if (std::any_of(std::begin(kDirectories), std::end(kDirectories),
                  [&](auto part) { return path.find(part) != std::string_view::npos; }))
    return true;
  return name.starts_with(".env.") ||
         std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](auto ending) { return name.ends_with(ending); });
}

bool IsText(std::string_view data) { return data.find('\0') == std::string_view::npos; }

struct Loaded {
  std::string data;
  std::string skip_reason;  // not empty: not taken
  bool exists = false;
};

Loaded Load(const std::string& path, std::size_t limit) {
  Loaded loaded;
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) {
    const int error = errno;
    loaded.exists = error != ENOENT && error != ENOTDIR && error != ENAMETOOLONG && error != ELOOP;
    loaded.skip_reason = error == EACCES || error == EPERM ? "no_permission"
                         : loaded.exists                   ? "unreadable"
                                                           : "not_found";
    return loaded;
  }
  loaded.exists = true;
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    loaded.skip_reason = "not_regular";
    return loaded;
  }
  std::array<char, 512> head{};
  const ssize_t got = ::pread(fd.get(), head.data(), head.size(), 0);
  if (got > 0 && !IsText(std::string_view(head.data(), static_cast<std::size_t>(got)))) {
    loaded.skip_reason = "binary";
    return loaded;
  }
  auto data = base::ReadFd(fd.get(), limit);
  if (!data) {
    loaded.skip_reason = data.error().reason == "files.too_large" ? "too_large" : "unreadable";
  } else if (!IsText(*data)) {
    loaded.skip_reason = "binary";
  } else {
    loaded.data = *std::move(data);
  }
  return loaded;
}

class Bundler {
 public:
  explicit Bundler(const SourceRequest& request) : request_(request) {}

  // `wanted`: say so when it cannot be taken; otherwise only files that exist count.
  // Returns the bytes before redaction.
  std::optional<std::string> Take(const std::string& name, const std::string& directory,
                                  std::string_view role, bool wanted) {
    if (name.empty()) return std::nullopt;
    const std::string path = name.front() == '/' ? name : base::JoinPath(directory, name);
    const std::string real = Canonical(path);
    if (!seen_.insert(real).second) return std::nullopt;
    if (IsSecretFile(path) || IsSecretFile(real)) {  // a link may have any name
      if (wanted || base::Exists(path)) Skip(path, "secret_name");
      return std::nullopt;
    }
    if (bundle_.files.size() >= request_.limits.files) {
      if (wanted || base::Exists(path)) Skip(path, "budget");
      return std::nullopt;
    }
    Loaded loaded = Load(path, request_.limits.file_bytes);
    if (loaded.skip_reason == "not_regular" && !wanted)
      return std::nullopt;  // a directory, /dev/null
    if (!loaded.skip_reason.empty()) {
      if (loaded.exists || wanted) Skip(path, loaded.skip_reason);
      return std::nullopt;
    }
    if (total_ + loaded.data.size() > request_.limits.total_bytes) {
      Skip(path, "budget");
      return std::nullopt;
    }
    total_ += loaded.data.size();
    RedactedText redacted = Redact(loaded.data);
    bundle_.files.push_back({.path = path,
                             .role = std::string(role),
                             .data = std::move(redacted.text),
                             .content_hash = base::Sha256Hex(loaded.data),
                             .redactions = redacted.redactions});
    return std::move(loaded.data);
  }

  void TakeReferences(std::string_view script, const std::string& script_directory) {
    for (const std::string& name : FindReferences(script)) {
      // As the shell would find it, else as Python would.
      const bool beside =
          !base::Exists(base::JoinPath(request_.working_directory, name)) && name.front() != '/';
      Take(name, beside ? script_directory : request_.working_directory, "import",
           /*wanted=*/false);
    }
  }

  // A compiled program is no source that was left out.
  void ForgetBinaries() {
    std::erase_if(bundle_.skipped, [](const auto& skip) { return skip.reason == "binary"; });
  }

  evidence::SourceBundle Finish() && { return std::move(bundle_); }

 private:
  static std::string Canonical(const std::string& path) {
    char* real = ::realpath(path.c_str(), nullptr);
    if (real == nullptr) return path;
    std::string out(real);
    ::free(real);
    return out;
  }
  void Skip(const std::string& path, std::string_view reason) {
    if (bundle_.skipped.size() < request_.limits.files)
      bundle_.skipped.push_back({path, std::string(reason)});
  }

  const SourceRequest& request_;
  evidence::SourceBundle bundle_;
  std::set<std::string> seen_;
  std::size_t total_ = 0;
};

void AddUnique(std::vector<std::string>& names, std::string_view name) {
  if (name.empty() || name.size() > 1024 || names.size() >= kMaxReferences) return;
  if (name.find_first_of("$*?`(){}<>|") != std::string_view::npos) return;  // not a plain path
  if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

std::string_view Unquote(std::string_view word) {
  while (!word.empty() && (word.front() == '"' || word.front() == '\'')) word.remove_prefix(1);
  while (!word.empty() && (word.back() == '"' || word.back() == '\'' || word.back() == ';'))
    word.remove_suffix(1);
  return word;
}

void AddPythonImport(std::vector<std::string>& names, std::string_view module) {
  while (!module.empty() && (module.back() == ',' || module.back() == ';')) module.remove_suffix(1);
  while (module.starts_with('.')) module.remove_prefix(1);
  if (module.empty()) return;
  std::string path(module);
  std::replace(path.begin(), path.end(), '.', '/');
  AddUnique(names, path + ".py");
}

}  // namespace

std::vector<std::string> FindReferences(std::string_view script) {
  std::vector<std::string> names;
  for (std::string_view line : base::Split(script, '\n')) {
    line = base::Trim(line);
    if (line.empty() || line.starts_with('#') || line.size() > 4096) continue;
    const std::vector<std::string_view> words = base::SplitSpaces(line);
    if (words.size() >= 2 && words[0] == "import") {
      for (std::size_t i = 1; i < words.size() && words[i] != "as"; ++i)
        AddPythonImport(names, words[i]);
      continue;
    }
    if (words.size() >= 4 && words[0] == "from" && words[2] == "import") {
      AddPythonImport(names, words[1]);
      continue;
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string_view word = Unquote(words[i]);
      const bool takes_file = word == "source" || (word == "." && i == 0) || IsInterpreter(word);
      if (takes_file && i + 1 < words.size()) {
        const std::string_view next = Unquote(words[i + 1]);
        if (!next.starts_with('-') && !next.starts_with('=')) AddUnique(names, next);
      } else if (word.starts_with("./") || word.starts_with("../")) {
        AddUnique(names, word);
      }
    }
  }
  return names;
}

evidence::SourceBundle CollectSources(const SourceRequest& request) {
  Bundler bundler(request);
  const std::string& directory = request.working_directory;
  const std::vector<std::string>& command = request.command;
  bool script_next = false;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    std::optional<std::string> text;
    std::string path = word;
    if (i == 0) {
      script_next = IsInterpreter(word);
      // "./train.sh" is a script of the user's; "python" and what lies in /usr/bin is not.
      path = request.program.empty() ? word : request.program;
      const bool own = word.find('/') != std::string::npos && !word.starts_with("/usr/") &&
                       !word.starts_with("/bin/");
      if (own && !script_next) {
        text = bundler.Take(path, directory, "script", /*wanted=*/false);
        bundler.ForgetBinaries();
      }
    } else if (word == "-m" || word == "-c") {
      if (script_next) ++i;  // a module name or the program text itself
      script_next = false;
      continue;
    } else if (word.starts_with('-')) {
      const std::size_t equals = word.find('=');
      if (equals != std::string::npos) {
        bundler.Take(word.substr(equals + 1), directory, "argument", /*wanted=*/false);
      }
      continue;
    } else {
      if (IsInterpreter(word) &&
          word.find('/') == std::string::npos) {  // env python x.py, timeout 9 bash y
        script_next = true;
        continue;
      }
      text = bundler.Take(word, directory, script_next ? "script" : "argument", /*wanted=*/false);
      if (!script_next && text && !text->starts_with("#!"))
        text.reset();  // data: no references in it
      script_next = false;
    }
    if (text)
      bundler.TakeReferences(
          *text,
          std::string(DirectoryOf(path.front() == '/' ? path : base::JoinPath(directory, path))));
  }
  for (const std::string& name : request.extra)
    bundler.Take(name, directory, "argument", /*wanted=*/true);
  return std::move(bundler).Finish();
}

}  // namespace expanse::collect
