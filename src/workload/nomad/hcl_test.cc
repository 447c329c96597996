#include "workload/nomad/hcl.h"

#include <gtest/gtest.h>

#include <string>

#include "workload/nomad/json.h"

namespace expanse::workload::hcl {
namespace {

// One line for a tree: kinds by their signs, places left out.
std::string Show(const Expression& e) {
  const auto all = [&](std::string_view between) {
    std::string out;
    for (const Expression& child : e.children) {
      out += (out.empty() ? "" : std::string(between)) + Show(child);
    }
    return out;
  };
  switch (e.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return e.number != 0 ? "true" : "false";
    case Kind::kNumber:
      return std::to_string(static_cast<int>(e.number));
    case Kind::kString:
      return "'" + e.text + "'";
    case Kind::kTemplate:
      return "T(" + all("+") + ")";
    case Kind::kTemplateIf:
      return "If(" + all(",") + ")";
    case Kind::kTemplateFor:
      return "For(" + all(",") + ")";
    case Kind::kTuple:
      return "[" + all(",") + "]";
    case Kind::kObject:
      return "{" + all(",") + "}";
    case Kind::kVariable:
      return e.text;
    case Kind::kAttribute:
      return Show(e.children[0]) + "." + e.text;
    case Kind::kIndex:
      return Show(e.children[0]) + "[" + Show(e.children[1]) + "]";
    case Kind::kSplat:
      return "Splat(" + all(",") + ")";
    case Kind::kCall:
      return e.text + "(" + all(",") + (e.number != 0 ? "..." : "") + ")";
    case Kind::kUnary:
      return e.text + Show(e.children[0]);
    case Kind::kBinary:
      return "(" + all(e.text) + ")";
    case Kind::kConditional:
      return "(" + Show(e.children[0]) + "?" + Show(e.children[1]) + ":" + Show(e.children[2]) +
             ")";
    case Kind::kForTuple:
    case Kind::kForObject:
      return "for(" + all(",") + ")";
    case Kind::kForeign:
      return "<" + e.text + ">";
  }
  return "?";
}

std::string Value(std::string_view text) {
  const auto body = ParseBody("a = " + std::string(text) + "\n");
  if (!body) return body.error().reason + ": " + body.error().message;
  if (body->attributes.size() != 1 || !body->blocks.empty()) return "more than one statement";
  return Show(body->attributes[0].value);
}

TEST(Hcl, Expressions) {
  EXPECT_EQ(Value("1 + 2 * 3 - 4"), "((1+(2*3))-4)");
  EXPECT_EQ(Value("a || b && !c == d"), "(a||(b&&(!c==d)))");
  EXPECT_EQ(Value("a ? b : c ? d : e"), "(a?b:(c?d:e))");
  EXPECT_EQ(Value("-(1 + 2) % 3"), "(-(1+2)%3)");
  EXPECT_EQ(Value("f(a, [1, 2]...)"), "f(a,[1,2]...)");
  EXPECT_EQ(Value("a.b[\"c\"].0[1]"), "a.b['c'].0[1]");
  EXPECT_EQ(Value("a[*].b.c"), "Splat(a,*.b.c)");
  EXPECT_EQ(Value("a.*.b[0]"), "Splat(a,*.b)[0]");
  EXPECT_EQ(Value("[for k, v in m : v if k != \"x\"]"), "for(m,v,(k!='x'))");
  EXPECT_EQ(Value("{for v in m : v => 1...}"), "for(m,v,1)");
  EXPECT_EQ(Value("{ a = 1, \"b\" : 2\n (c) = 3, d-e = null }"), "{'a',1,'b',2,c,3,'d-e',null}");
  EXPECT_EQ(Value("[\n  1, # one\n  2, // two\n  /* none */\n]"), "[1,2]");
  EXPECT_EQ(Value("(\n  1\n  + 2\n)"), "(1+2)");
  EXPECT_EQ(Value("core::min(1, 2)"), "core::min(1,2)");
  EXPECT_EQ(Value("1.5e3"), "1500");
  EXPECT_EQ(Value("a <= b"), "(a<=b)");
}

TEST(Hcl, Templates) {
  EXPECT_EQ(Value(R"("plain")"), "'plain'");
  EXPECT_EQ(Value(R"("")"), "''");
  EXPECT_EQ(Value(R"("a\"b\n\u00e9\\")"), "'a\"b\n\xc3\xa9\\'");
  EXPECT_EQ(Value(R"("x${a}y${f("q", "}")}")"), "T('x'+a+'y'+f('q','}'))");
  EXPECT_EQ(Value(R"("$${a} %%{if} $ 5%")"), "'${a} %{if} $ 5%'");
  EXPECT_EQ(Value(R"("  ${~ a ~}  b")"), "T(a+'b')");
  EXPECT_EQ(Value(R"("%{ if a }x%{ else }y%{ endif }z")"), "T(If(a,T('x'),T('y'))+'z')");
  EXPECT_EQ(Value(R"("%{ for i in l ~} ${i}, %{ endfor }")"), "T(For(l,T(i+', ')))");
  // What is no expression stays: a shell's default, a format of curl's.
  EXPECT_EQ(Value(R"("${X:-y} %{http_code}")"), "'${X:-y} %{http_code}'");
  EXPECT_EQ(Value(R"("open ${ brace")"), "'open ${ brace'");
}

TEST(Hcl, Heredocs) {
  EXPECT_EQ(Value("<<EOF\n a ${b}\n\"c\\n\nEOF"), "T(' a '+b+'\n\"c\\n\n')");
  EXPECT_EQ(Value("<<-EOF\n    a\n\n      b ${\"  c\"}\n    EOF"), "T('a\n\n  b '+'  c'+'\n')");
  EXPECT_EQ(Value("<<-EOF\n    a\n  \n    b\n    EOF"), "'a\n  \nb\n'");
  EXPECT_EQ(Value("<<-EOF\n    %{ if a ~}\n    yes\n    %{ endif ~}\n    end\n    EOF"),
            "T(If(a,T('    yes\n'),'')+'    end\n')");
  EXPECT_EQ(Value("[<<A\nx\nA\n, <<B\ny\nB\n]"), "['x\n','y\n']");
  EXPECT_EQ(Value("<<EOF\nnot EOF here\n"), "syntax: heredoc \"EOF\" is not closed");
}

TEST(Hcl, ValuesOfOtherLanguages) {
  EXPECT_EQ(Value("[[ .x ]]"), "<[[ .x ]]>");
  EXPECT_EQ(Value("[[1, 2], [3]]"), "[[1,2],[3]]");
  EXPECT_EQ(Value("[[ var \"x\" . ]]00"), "<[[ var \"x\" . ]]00>");
  EXPECT_EQ(Value("${A}${B}"), "<${A}${B}>");
  EXPECT_EQ(Value("{{ x | int }}"), "<{{ x | int }}>");
  EXPECT_EQ(Value("\"[[ env \"X\" ]]\""), "'[[ env \"X\" ]]'");
  EXPECT_EQ(Value("[\"[[a\", \"b]]\"]"), "['[[a','b]]']");
}

TEST(Hcl, RefusesWithAPlace) {
  const auto refused = [](std::string_view text) {
    const auto body = ParseBody(text);
    if (body) return std::string("parsed");
    return std::to_string(body.error().line) + ":" + std::to_string(body.error().column) + " " +
           body.error().message;
  };
  EXPECT_EQ(refused("a = 1\nb = \n"), "2:5 expected a value");
  EXPECT_EQ(refused("a = \"x\n"), "1:5 string is not closed");
  EXPECT_EQ(refused("a {\n b = [1\n c = 2 ]\n}\n"),
            "3:2 expected \",\" or \"]\" after a value of a list");
  EXPECT_EQ(refused("}\n"), "1:1 \"}\" without a block to close");
  EXPECT_EQ(refused("a \"b\" = 1\n"), "1:7 expected \"=\" or \"{\" after \"a\"");
  EXPECT_EQ(refused("x {\n b = 1\n a = 2\n b = 3\n}\n"), "4:2 \"b\" is written twice");
  EXPECT_EQ(refused("/* a"), "1:1 comment is not closed");
  EXPECT_EQ(refused("a = 1x\n"), "1:6 not a number");
  EXPECT_EQ(refused("a = \"%{ if b }\"\n"), "1:15 \"if\" of a template without \"endif\"");
}

TEST(Hcl, BlocksLabelsAndPlaces) {
  const std::string_view text = "\xef\xbb\xbfjob \"x y\" z {\n  a = 1\n  sub {}\n}\n";
  const auto body = ParseBody(text);
  ASSERT_TRUE(body);
  const Block& job = body->blocks.at(0);
  EXPECT_EQ(job.labels.at(0).text, "x y");
  EXPECT_EQ(text.substr(job.labels[0].begin, 3), "x y");
  EXPECT_EQ(job.labels.at(1).text, "z");
  EXPECT_EQ(text[job.body.close], '}');
  EXPECT_EQ(text[job.body.open - 1], '{');
  EXPECT_EQ(text.substr(job.body.attributes.at(0).begin, 5), "a = 1");
  ASSERT_NE(job.body.FindBlock("sub"), nullptr);
  EXPECT_EQ(job.body.FindBlock("none"), nullptr);
}

// Bounds: each of these is linear work, or refused.
TEST(Hcl, HostileTextEndsSoon) {
  const auto repeat = [](std::string_view piece, std::size_t bytes) {
    std::string out;
    while (out.size() < bytes) out += piece;
    return out;
  };
  for (const std::string_view piece : {"\"${",
                                       "[[",
                                       "${",
                                       "{{",
                                       "<<A\n",
                                       "a={",
                                       "a=\"${\"${",
                                       "a=[[<<A\n",
                                       "%{if x}",
                                       "a.",
                                       "[*]",
                                       "a=\"[[ a \"",
                                       "1+",
                                       "a?b:",
                                       "\"\\",
                                       "/*",
                                       "f(",
                                       "x=\"%{if a}",
                                       "a=<<-E\n  ${\nE\n",
                                       "a = \"${b\n",
                                       "<%",
                                       "a=[[\"x",
                                       "a={a=\"${\n"}) {
    const std::string text = repeat(piece, 300'000);
    (void)ParseBody(text);
    (void)ParseBody("a = " + text);
    (void)ParseBody("a = \"" + text);
    (void)ParseBody("a = <<E\n" + text + "\nE\n");
    (void)ParseJson("{\"a\": " + text);
  }
  EXPECT_EQ(ParseBody(repeat("a{}\n", kMaxText)).error().reason, "too_large");
}

TEST(Json, StrictWithPlaces) {
  const auto tree = ParseJson(" {\"a\": [1, -2.5e1, true, null, \"x\\u00e9\\ud83d\\ude00\\n\"]} ");
  ASSERT_TRUE(tree);
  EXPECT_EQ(Show(*tree), "{'a',[1,-25,true,null,'x\xc3\xa9\xf0\x9f\x98\x80\n']}");
  EXPECT_EQ(tree->begin, 1u);
  for (const char* text : {"", "{", "[1,]", "{\"a\":1,}", "{a: 1}", "[1 2]", "01x", "nul",
                           "\"\\x\"", "\"\\u12\"", "{} {}", "[+1]", "\"a\nb\"", "[1.]"}) {
    EXPECT_FALSE(ParseJson(text)) << text;
  }
}

}  // namespace
}  // namespace expanse::workload::hcl
