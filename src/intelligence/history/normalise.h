// The passes behind NormaliseSource, one file each. Internal to history. Every pass is linear and
// only ever removes text or shortens white space, so that running them again ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace expanse::intelligence::history {

// What tells comments in a text.
enum class Language : std::uint8_t {
  kUnknown,  // no comments known
  kShell,
  kPython,
  kHash,     // "#": R, Perl, Julia, Make, INI, TOML
  kYaml,     // "#", and resource blocks where it is a manifest
  kHcl,      // "#", "//" and "/* */", resource blocks
  kJson,     // no comments, resource blocks
  kSlash,    // "//" and "/* */"
  kDash,     // "--": SQL, Lua, Haskell
  kBang,     // "!": Fortran
  kPercent,  // "%": MATLAB
};

// By the name's ending; for batch scripts and names without one by the first line ("#!"), else by a
// scheduler's directives.
Language LanguageOf(std::string_view path, std::string_view text);

// Commands word by word: comments and directives go, but for what sets the environment; options of
// srun, sbatch and salloc that ask for resources, redirections to files and options that name
// output go; continued lines become one.
std::string NormaliseShell(std::string_view text);

// "#" and what follows outside strings; strings may span lines.
std::string StripPythonComments(std::string_view text);
// The other languages. Strings end on their line.
std::string StripComments(std::string_view text, Language language);

// Blocks named "resources", by indentation, and activeDeadlineSeconds.
std::string StripYamlResources(std::string_view text);
// `resources { … }` blocks of HCL, and "resources": { … } members of JSON in any case.
std::string StripBracedResources(std::string_view text, Language language);

// True for an option whose value names output: "--output-dir", "--logfile". `name` is without "=".
bool IsOutputOption(std::string_view name);

}  // namespace expanse::intelligence::history
