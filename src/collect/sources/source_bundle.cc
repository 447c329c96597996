#include "collect/sources/source_bundle.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>

#include "base/crypto.h"
#include "base/files.h"
#include "base/text.h"
#include "collect/logs/redact.h"
#include "collect/sources/script_files.h"

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

Loaded Load(const FileOpener& open, const std::string& path, std::size_t limit) {
  Loaded loaded;
  auto fd = open(path);
  if (!fd) {
    const std::string& reason = fd.error().reason;
    if (reason == "files.no_permission") {
      loaded.skip_reason = "no_permission";
    } else if (reason == "files.not_regular") {
      loaded.skip_reason = "not_regular";
    } else if (reason == "files.not_found" || reason == "files.link") {
      loaded.skip_reason = reason.substr(6);
      return loaded;
    } else {
      loaded.skip_reason = "unreadable";
    }
    loaded.exists = true;
    return loaded;
  }
  loaded.exists = true;
  std::array<char, 512> head{};
  const ssize_t got = ::pread(fd->get(), head.data(), head.size(), 0);
  if (got > 0 && !IsText(std::string_view(head.data(), static_cast<std::size_t>(got)))) {
    loaded.skip_reason = "binary";
    return loaded;
  }
  auto data = base::ReadFd(fd->get(), limit);
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
  explicit Bundler(const SourceRequest& request)
      : request_(request), open_(request.open ? request.open : OpenOwn) {}

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
    Loaded loaded = Load(open_, path, request_.limits.file_bytes);
    if (loaded.skip_reason == "not_regular" && !wanted)
      return std::nullopt;  // a directory, /dev/null
    if (!loaded.skip_reason.empty()) {
      if (loaded.exists || wanted) Skip(path, loaded.skip_reason);
      return std::nullopt;
    }
    if (!AddText(path, role, loaded.data)) return std::nullopt;
    return std::move(loaded.data);
  }

  // The batch script, whose text came with the request: its file may be another one by now.
  void TakeScript() {
    std::string path = request_.script_path.empty() ? "batch_script" : request_.script_path;
    seen_.insert(Canonical(path));
    if (request_.script->size() > request_.limits.file_bytes) {
      Skip(path, "too_large");
    } else if (!IsText(*request_.script)) {
      Skip(path, "binary");
    } else {
      AddText(path, "script", *request_.script);
    }
    const std::string& directory = request_.working_directory;
    for (const ScriptFile& file : FindScriptFiles(*request_.script, directory)) {
      const std::size_t skipped = bundle_.skipped.size();
      const auto text = Take(file.path, directory, file.is_script ? "import" : "argument",
                             /*wanted=*/false);
      if (!file.is_script) continue;
      ForgetBinaries(skipped);
      const std::string path_of =
          file.path.front() == '/' ? file.path : base::JoinPath(directory, file.path);
      if (text) TakeReferences(*text, std::string(DirectoryOf(path_of)));
    }
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

  // A compiled program is no source that was left out. `from`: of those skipped since.
  void ForgetBinaries(std::size_t from = 0) {
    const auto begin = bundle_.skipped.begin() + static_cast<std::ptrdiff_t>(from);
    bundle_.skipped.erase(std::remove_if(begin, bundle_.skipped.end(),
                                         [](const auto& skip) { return skip.reason == "binary"; }),
                          bundle_.skipped.end());
  }

  evidence::SourceBundle Finish() && { return std::move(bundle_); }

 private:
  static base::Result<base::UniqueFd> OpenOwn(const std::string& path) {
    return OpenRegularFile(path);
  }

  bool AddText(const std::string& path, std::string_view role, std::string_view text) {
    if (total_ + text.size() > request_.limits.total_bytes) {
      Skip(path, "budget");
      return false;
    }
    total_ += text.size();
    RedactedText redacted = Redact(text);
    bundle_.files.push_back({.path = path,
                             .role = std::string(role),
                             .data = std::move(redacted.text),
                             .content_hash = base::Sha256Hex(text),
                             .redactions = redacted.redactions});
    return true;
  }

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
  const FileOpener open_;
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
  if (request.script) bundler.TakeScript();
  for (std::size_t i = request.script ? 1 : 0; i < command.size(); ++i) {
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
