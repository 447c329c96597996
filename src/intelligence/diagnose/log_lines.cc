#include "intelligence/diagnose/log_lines.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "intelligence/diagnose/log_prefix.h"

namespace expanse::intelligence::diagnose {
namespace {

// Control sequences of terminals (ECMA-48: CSI, OSC and two-byte escapes) and control bytes.
void AppendPrintable(std::string_view raw, std::string* out) {
  const bool plain = std::none_of(raw.begin(), raw.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t';
  });
  if (plain) {
    out->append(raw);
    return;
  }
  std::size_t at = 0;
  while (at < raw.size()) {
    const auto c = static_cast<unsigned char>(raw[at]);
    if (c == 0x1b) {
      ++at;
      if (at < raw.size() && raw[at] == '[') {
        ++at;
        while (at < raw.size() && (raw[at] < 0x40 || raw[at] > 0x7e)) ++at;
        ++at;
      } else if (at < raw.size() && raw[at] == ']') {
        while (at < raw.size() && raw[at] != '\a' && raw[at] != 0x1b) ++at;
        if (at < raw.size() && raw[at] == '\a') ++at;
      } else {
        ++at;
      }
      continue;
    }
    if (c >= 0x20 || c == '\t') out->push_back(raw[at]);
    ++at;
  }
}

// What is left on the line of a terminal: the text after the last carriage return that something
// follows.
std::string_view AfterOverwriting(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const std::size_t last = line.rfind('\r');
  return last == std::string_view::npos ? line : line.substr(last + 1);
}

std::size_t Digits(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && base::IsDigit(text[end])) ++end;
  return end - at;
}

// Length of a time stamp at the beginning: dates with or without time, times, syslog's "Jan  2
// 03:04:05", seconds since some start in brackets; 0 where there is none.
std::size_t StampLength(std::string_view text) {
  std::size_t at = 0;
  const auto eat = [&](char c) { return at < text.size() && text[at] == c ? (++at, true) : false; };
  const auto digits = [&](std::size_t least, std::size_t most) {
    const std::size_t found = Digits(text, at);
    if (found < least || found > most) return false;
    at += found;
    return true;
  };
  const auto time = [&] {
    const std::size_t start = at;
    if (!(digits(1, 2) && eat(':') && digits(2, 2))) return at = start, false;
    if (eat(':') && !digits(2, 2)) return at = start, false;
    if ((at < text.size() && (text[at] == '.' || text[at] == ',')) && Digits(text, at + 1) > 0) {
      ++at;
      at += Digits(text, at);
    }
    if (at < text.size() && text[at] == 'Z') return ++at, true;
    if (at < text.size() && (text[at] == '+' || text[at] == '-') && Digits(text, at + 1) >= 2) {
      ++at;
      at += Digits(text, at);
      if (eat(':')) at += Digits(text, at);
    }
    return true;
  };
  const std::size_t first = Digits(text, 0);
  if (first == 4 || first == 2) {
    at = first;
    const char separator = at < text.size() ? text[at] : ' ';
    if ((separator == '-' || separator == '/') && eat(separator) && digits(1, 2) &&
        eat(separator) && digits(1, 4)) {
      if (at < text.size() && (text[at] == 'T' || text[at] == ' ')) {
        const std::size_t date = at;
        ++at;
        if (!time()) at = date;
      }
      return at;
    }
    at = 0;
  }
  if (first == 1 || first == 2) {
    at = 0;
    return time() ? at : 0;
  }
  static constexpr std::array<std::string_view, 12> kMonths = {
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (std::find(kMonths.begin(), kMonths.end(), text.substr(0, 3)) != kMonths.end()) {
    at = 3;
    while (eat(' ')) {
    }
    if (digits(1, 2) && eat(' ') && time()) return at;
  }
  return 0;
}

void TrimLeft(std::string_view* text) {
  while (!text->empty() && base::IsSpace(text->front())) text->remove_prefix(1);
}

bool TakeStamp(std::string_view* text, Stripped* line) {
  std::string_view rest = *text;
  const bool bracket = !rest.empty() && (rest.front() == '[' || rest.front() == '(');
  if (bracket) rest.remove_prefix(1);
  TrimLeft(&rest);
  std::size_t length = StampLength(rest);
  if (length == 0 && bracket) {  // kernel: "[ 1234.567890]"
    const std::size_t whole = Digits(rest, 0);
    if (whole > 0 && whole < rest.size() && rest[whole] == '.') {
      length = whole + 1 + Digits(rest, whole + 1);
      if (length >= rest.size() || rest[length] != ']') length = 0;
    }
  }
  if (length == 0) return false;
  const std::string_view stamp = rest.substr(0, length);
  rest.remove_prefix(length);
  if (bracket) {
    if (rest.empty() || (rest.front() != ']' && rest.front() != ')')) return false;
    rest.remove_prefix(1);
  } else if (!rest.empty() && !base::IsSpace(rest.front()) && rest.front() != ':' &&
             rest.front() != '|' && rest.front() != ']') {
    return false;
  }
  if (line->stamp.empty()) line->stamp = stamp;
  while (!rest.empty() && (base::IsSpace(rest.front()) || rest.front() == '|'))
    rest.remove_prefix(1);
  if (!rest.empty() && rest.front() == ':' && rest.size() > 1 && rest[1] == ' ')
    rest.remove_prefix(2);
  *text = rest;
  return true;
}

std::optional<std::uint32_t> Number(std::string_view text) {
  return base::ParseInt<std::uint32_t>(text);
}

// "[rank3]:", "[1,3]<stderr>:", "rank 3:", "3: ".
bool TakeRank(std::string_view* text, Stripped* line) {
  std::string_view rest = *text;
  const auto done = [&](std::optional<std::uint32_t> rank) {
    if (!rank) return false;
    if (!line->rank) line->rank = rank;
    TrimLeft(&rest);
    *text = rest;
    return true;
  };
  if (rest.starts_with("[rank") || rest.starts_with("[Rank ")) {
    rest.remove_prefix(5);
    TrimLeft(&rest);
    const std::size_t length = Digits(rest, 0);
    const auto rank = Number(rest.substr(0, length));
    rest.remove_prefix(length);
    if (!rest.starts_with("]")) return false;
    rest.remove_prefix(1);
    if (rest.starts_with(":")) rest.remove_prefix(1);
    return done(rank);
  }
  if (rest.starts_with("[")) {  // Open MPI's --tag-output: "[job,rank]<stream>:"
    const std::size_t comma = 1 + Digits(rest, 1);
    if (comma == 1 || comma >= rest.size() || rest[comma] != ',') return false;
    const std::size_t end = comma + 1 + Digits(rest, comma + 1);
    const auto rank = Number(rest.substr(comma + 1, end - comma - 1));
    if (!rest.substr(end).starts_with("]<std")) return false;
    const std::size_t colon = rest.find(":", end);
    if (colon == std::string_view::npos) return false;
    rest.remove_prefix(colon + 1);
    return done(rank);
  }
  const std::size_t length = Digits(rest, 0);  // srun --label
  if (length > 0 && length <= 6 && rest.substr(length).starts_with(": ")) {
    const auto rank = Number(rest.substr(0, length));
    rest.remove_prefix(length + 2);
    return done(rank);
  }
  return false;
}

// "node01: message" and "node01:1234:1240 [3] NCCL …": a host's name, whose first label ends in a
// digit. ("java.lang.OutOfMemoryError: …" is none.)
bool TakeNode(std::string_view* text, Stripped* line) {
  const std::string_view rest = *text;
  std::size_t end = 0;
  std::size_t label = 0;  // end of the first one
  while (end < rest.size() && end < 64) {
    const char c = rest[end];
    if (!(c >= 'a' && c <= 'z') && !base::IsDigit(c) && c != '-' && c != '.') break;
    if (c == '.' && label == 0) label = end;
    ++end;
  }
  if (label == 0) label = end;
  if (end < 3 || end >= rest.size() || rest[end] != ':' || base::IsDigit(rest[0])) return false;
  if (!base::IsDigit(rest[label - 1])) return false;
  if (rest.substr(end).starts_with(": ")) {
    if (line->node.empty()) line->node = rest.substr(0, end);
    *text = rest.substr(end + 2);
    return true;
  }
  const std::size_t pid = Digits(rest, end + 1);
  if (pid > 0 && end + 1 + pid < rest.size() && rest[end + 1 + pid] == ':') {
    if (line->node.empty()) line->node = rest.substr(0, end);
  }
  return false;
}

// The beginning and the end of a line that is too long.
std::string Bounded(std::string_view raw) {
  std::string both(raw.substr(0, kMaxMessage / 2));
  both.append(" ").append(raw.substr(raw.size() - kMaxMessage / 2 + 1));
  return both;
}

}  // namespace

Stripped Strip(std::string_view raw, std::string* space) {
  Stripped line;
  space->clear();
  if (std::string_view text = AfterOverwriting(raw); text.size() <= kMaxMessage) {
    AppendPrintable(text, space);
  } else {
    AppendPrintable(Bounded(text), space);
  }
  std::string_view text = *space;
  TrimLeft(&text);
  for (int round = 0; round < 6; ++round) {
    if (!TakeStamp(&text, &line) && !TakeRank(&text, &line) && !TakeNode(&text, &line) &&
        !TakeLoggerPrefix(&text))
      break;
  }
  while (!text.empty() && base::IsSpace(text.back())) text.remove_suffix(1);
  line.message = text;
  return line;
}

void StripLine(std::string_view raw, LogLine* line) {
  std::string space;
  const Stripped stripped = Strip(raw, &space);
  line->message = stripped.message;
  line->rank = stripped.rank;
  line->node = stripped.node;
  line->stamp = stripped.stamp;
}

}  // namespace expanse::intelligence::diagnose
