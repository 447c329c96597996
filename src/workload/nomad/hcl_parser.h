// The recursive-descent parser behind hcl.h: one cursor over the text. Only for the hcl_*.cc files.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "workload/nomad/hcl.h"

namespace expanse::workload::hcl {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), text_size_(text.size()) {}

  // hcl_body.cc
  bool File(Body& body);
  Refusal TakeRefusal() const;

  // hcl_template.cc: the literal and interpolated parts of [pos, end) as one template.
  // `escapes`: backslash escapes count (quoted strings; not heredocs).
  bool Template(std::size_t end, bool escapes, Expression& out);

 private:
  // hcl_body.cc
  bool Statements(Body& body, bool in_braces);
  bool Statement(Body& body);
  bool CheckNames(const Body& body);
  bool Labels(Block& block);
  bool FinishBlock(Block& block);

  // hcl_expression.cc, hcl_collection.cc; each leaves pos_ behind what it read.
  bool Parse(Expression& out);  // conditional and all below
  bool Binary(int level, Expression& out);
  bool Unary(Expression& out);
  bool Postfix(Expression& out);
  bool PostfixStep(Expression& out, bool& more);
  bool Splat(Expression& out);
  bool Primary(Expression& out);
  bool Number(Expression& out);
  bool Word(Expression& out);
  bool Call(Expression& out);
  bool Parenthesised(Expression& out);
  bool Tuple(Expression& out);
  bool Object(Expression& out);
  bool ObjectItem(Expression& out);
  bool For(Expression& out, bool object);
  bool ForeignValue(Expression& out);

  // hcl_string.cc
  bool Quoted(Expression& out);
  bool Heredoc(Expression& out);
  bool QuotedEnd(std::size_t from, std::size_t limit, int nesting, std::size_t& end);
  bool InterpolationEnd(std::size_t from, std::size_t limit, int nesting, std::size_t& end);

  // hcl_template.cc
  struct Parts {
    Expression& out;
    std::string& stopped_at;  // the word of a directive that closes one
    std::size_t end;
    bool escapes;
    std::string literal = {};  // read, and not yet a part
    std::size_t literal_begin = 0;
    bool open_line = false;  // a "${" of this line was not closed
  };
  bool FlushLiteral(Parts& parts);
  bool Marked(Parts& parts);
  void AddPart(Parts& parts, std::size_t close);
  bool TemplateParts(std::size_t end, bool escapes, Expression& out, std::string& stopped_at);
  bool Interpolation(std::size_t end, Expression& out);
  void SkipTrimmed(std::size_t end);
  void SkipIndent(std::size_t end);
  bool Directive(std::size_t end, bool escapes, Expression& out, std::string& stopped_at);
  bool DirectiveClose();
  static bool IsDirective(std::string_view inside);
  bool DirectiveIf(std::size_t end, bool escapes, Expression& node);
  bool DirectiveFor(std::size_t end, bool escapes, Expression& node);

  // Spaces and comments; new lines too where they do not end anything.
  void SkipSpace(bool lines);
  void SkipLine();
  char Peek(std::size_t ahead = 0) const {
    return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0';
  }
  bool Eat(std::string_view token);
  bool AtWord(std::string_view word) const;
  std::string_view TakeWord();
  bool CountNode();
  bool Spend(std::size_t bytes);  // of looking ahead, which may see bytes more than once
  bool Finish(Expression& out, std::size_t begin);  // places, height, count
  bool Fail(std::string message, std::string reason = "syntax");

  struct Level {
    explicit Level(Parser& parser) : parser(parser) { ++parser.depth_; }
    ~Level() { --parser.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Parser& parser;
  };

  std::string_view text_;  // shorter while the inside of an interpolation is read
  std::size_t text_size_;
  std::size_t pos_ = 0;
  int depth_ = 0;
  int grouped_ = 0;         // inside () [] or ${}: new lines are spaces
  std::size_t indent_ = 0;  // taken off every line of the heredoc that is being read
  std::size_t nodes_ = 0;
  std::size_t scanned_ = 0;
  bool failed_ = false;
  std::size_t failed_at_ = 0;
  std::string reason_;
  std::string message_;
};

// The end of a template of another language ([[ … ]], {{ … }}, <% … %>) that begins at `from` and
// ends on its line; 0 where none is. In a string only one that has quotes of its own.
std::size_t FindForeignEnd(std::string_view text, std::size_t from, bool in_string);

inline bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
inline bool IsWordPart(char c) { return IsWordStart(c) || (c >= '0' && c <= '9') || c == '-'; }

}  // namespace expanse::workload::hcl
