#include "workload/nomad/insert.h"

#include <algorithm>
#include <utility>

namespace expanse::workload::nomad {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// White space at the beginning of the line of a byte; `alone`: nothing else stands in front of it.
std::string_view LineIndent(std::string_view text, std::size_t at, bool* alone = nullptr) {
  const std::size_t line = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  const std::size_t first = text.find_first_not_of(" \t", line);
  const std::size_t end = std::min(first, text.size());
  if (alone != nullptr) *alone = end >= at;
  return text.substr(line, std::min(end, std::max(at, line)) - line);
}

std::string_view NewLine(std::string_view text) {
  const std::size_t first = text.find('\n');
  return first != text.npos && first > 0 && text[first - 1] == '\r' ? "\r\n" : "\n";
}

// Writes lines (their indentation relative to the block's content) into an HCL block.
class HclInsertion {
 public:
  HclInsertion(std::string_view text, const Section& section)
      : text_(text), body_(*section.body), is_object_(section.is_object) {
    outer_ = LineIndent(text, section.begin);
    inner_ = outer_ + (outer_.find('\t') != std::string::npos ? "\t" : "  ");
    bool alone = false;
    if (const std::size_t first = FirstStatement(); first != text.npos) {
      const std::string_view indent = LineIndent(text, first, &alone);
      if (alone && indent.size() > outer_.size()) inner_ = indent;
    }
  }

  // One more level of indentation, as the block has it.
  std::string Step() const {
    return inner_.size() > outer_.size() ? inner_.substr(outer_.size()) : std::string("  ");
  }

  // "name = " in the column that the block's attributes have.
  std::string Assignment(std::string_view name) const {
    std::string out(name);
    for (const hcl::Attribute& attribute : body_.attributes) {
      bool alone = false;
      LineIndent(text_, attribute.begin, &alone);
      const std::size_t sign = text_.find('=', attribute.name_end);
      if (!alone || sign == text_.npos) continue;
      const std::size_t column = sign - attribute.begin;
      if (column > name.size() && text_[sign - 1] == ' ') out.resize(column - 1, ' ');
      break;
    }
    return out + " = ";
  }

  std::vector<Edit> Write(const std::vector<std::string>& lines) const {
    const std::string_view inside = text_.substr(body_.open, body_.close - body_.open);
    const std::string end_of_line(NewLine(text_));
    std::string written;
    for (const std::string& line : lines) written += inner_ + line + end_of_line;
    if (inside.find_first_not_of(kBlanks) == inside.npos) {
      return {{body_.open, body_.close, end_of_line + written + outer_}};
    }
    if (inside.find('\n') == inside.npos) return OnOneLine(inside, written, end_of_line);
    bool alone = false;
    const std::string_view indent = LineIndent(text_, body_.close, &alone);
    if (alone) {
      const std::size_t line = body_.close - indent.size();
      return {{line, line, written}};
    }
    return {{body_.close, body_.close, end_of_line + written + outer_}};
  }

 private:
  std::size_t FirstStatement() const {
    std::size_t first = text_.npos;
    if (!body_.attributes.empty()) first = body_.attributes[0].begin;
    if (!body_.blocks.empty()) first = std::min(first, body_.blocks[0].begin);
    return first;
  }

  // A block of one line may hold one attribute: it becomes one of several lines.
  std::vector<Edit> OnOneLine(std::string_view inside, const std::string& written,
                              const std::string& end_of_line) const {
    const std::size_t first = body_.open + inside.find_first_not_of(kBlanks);
    std::size_t last = body_.open + inside.find_last_not_of(kBlanks) + 1;
    std::string behind = end_of_line + written + outer_;
    if (is_object_ && text_[last - 1] != ',') behind.insert(0, ",");
    return {{body_.open, first, end_of_line + inner_}, {last, body_.close, behind}};
  }

  std::string_view text_;
  const hcl::Body& body_;
  bool is_object_;
  std::string outer_;
  std::string inner_;
};

// Writes a member at the front of a JSON object, on a line of its own where the others are.
Edit WriteJson(std::string_view text, const hcl::Body& body, const std::string& member) {
  const std::string_view inside = text.substr(body.open, body.close - body.open);
  const std::size_t first = inside.find_first_not_of(kBlanks);
  if (first == inside.npos) return {body.open, body.open, member};
  return {body.open, body.open, std::string(inside.substr(0, first)) + member + ","};
}

}  // namespace

std::vector<Edit> InsertMemory(std::string_view text, const Jobspec& jobspec,
                               const Jobspec::Task& task) {
  const hcl::Body* const resources = task.resources.body;
  // A null stands where the value belongs.
  if (resources != nullptr) {
    if (const hcl::Expression* null = task.resources.FindWritten("memory")) {
      return {{null->begin, null->end, std::string(1, kValueMark)}};
    }
  }
  if (task.section.body->style == hcl::Style::kJson) {
    const std::string member =
        std::string(jobspec.api ? "\"MemoryMB\"" : "\"memory\"") + ": " + kValueMark;
    if (resources != nullptr) return {WriteJson(text, *resources, member)};
    const std::string object = "{" + member + "}";
    if (const hcl::Expression* null = task.section.FindWritten("resources")) {
      return {{null->begin, null->end, object}};
    }
    const std::string block =
        std::string(jobspec.api ? "\"Resources\"" : "\"resources\"") + ": " + object;
    return {WriteJson(text, *task.section.body, block)};
  }
  if (resources != nullptr) {
    const HclInsertion insertion(text, task.resources);
    return insertion.Write({insertion.Assignment("memory") + kValueMark});
  }
  const HclInsertion insertion(text, task.section);
  return insertion.Write({"resources {", insertion.Step() + "memory = " + kValueMark, "}"});
}

std::vector<Edit> InsertCount(std::string_view text, const Section& device, bool api) {
  if (const hcl::Expression* null = device.FindWritten("count")) {
    return {{null->begin, null->end, std::string(1, kValueMark)}};
  }
  if (device.body->style == hcl::Style::kJson) {
    return {WriteJson(text, *device.body,
                      std::string(api ? "\"Count\"" : "\"count\"") + ": " + kValueMark)};
  }
  const HclInsertion insertion(text, device);
  return insertion.Write({insertion.Assignment("count") + kValueMark});
}

}  // namespace expanse::workload::nomad
