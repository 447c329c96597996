// Where a command reads and writes. stdout carries results only; messages and prompts go to stderr.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/settings.h"

namespace expanse::cli {

// Not thread-safe; one per process.
class Terminal {
 public:
  virtual ~Terminal() = default;

  virtual void Out(std::string_view text) = 0;
  virtual void Err(std::string_view text) = 0;
  // All of stdout is written; fails with cli.output when it could not be (disk full, closed pipe).
  virtual base::Status Flush() = 0;

  virtual bool OutIsTerminal() const = 0;
  virtual bool ErrIsTerminal() const = 0;
  // Both ends of a question are a person's: stdin and stderr.
  virtual bool CanAsk() const = 0;
  // Columns of the terminal on stdout; 0 off a terminal.
  virtual std::size_t Width() const = 0;
  // Colour on stdout: a terminal, no NO_COLOR, TERM is not "dumb".
  virtual bool Colour() const = 0;

  // One line of standard input without its newline. Fails with cli.interrupted (code cancelled) on
  // SIGINT or end of input. Blocks on the person, without a deadline.
  virtual base::Result<std::string> AskLine(std::string_view prompt) = 0;
  // The same without echo.
  virtual base::Result<std::string> AskSecret(std::string_view prompt) = 0;
  // All of standard input, at most 64 KiB, trimmed: a secret from a pipe.
  virtual base::Result<std::string> ReadInput() = 0;
  // All of standard input as it is. Fails with files.too_large above `limit` bytes.
  virtual base::Result<std::string> ReadBytes(std::size_t limit) = 0;
};

// On the descriptors 0, 1 and 2 of the process.
std::unique_ptr<Terminal> ProcessTerminal(const base::Settings::Environment& environment);

}  // namespace expanse::cli
