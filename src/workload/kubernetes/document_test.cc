#include "workload/kubernetes/document.h"

#include <gtest/gtest.h>

#include <string>

namespace expanse::workload::kubernetes {
namespace {

// "value=[bytes of the text]" of every scalar, in file order.
std::string Scalars(std::string_view text) {
  const auto document = ReadDocument(text);
  if (!document) return document.error().reason + ": " + document.error().message;
  std::string out;
  for (NodeId id = 0; id < document->size(); ++id) {
    const Node& node = document->Raw(id);
    if (node.kind != NodeKind::kScalar) continue;
    if (!out.empty()) out += " ";
    out += node.value + "=[" + std::string(text.substr(node.begin, node.end - node.begin)) + "]";
    EXPECT_EQ(document->ScalarAt(node.begin, node.end), id);
    EXPECT_EQ(document->PlaceAt(node.begin, node.end), PlaceOf(text, node.begin, node.end));
  }
  return out;
}

std::string Collections(std::string_view text) {
  const auto document = ReadDocument(text);
  if (!document) return document.error().message;
  std::string out;
  for (NodeId id = 0; id < document->size(); ++id) {
    const Node& node = document->Raw(id);
    if (node.kind != NodeKind::kMap && node.kind != NodeKind::kSequence) continue;
    out += "<" + std::string(text.substr(node.begin, node.end - node.begin)) + ">";
  }
  return out;
}

std::string Reason(std::string_view text) {
  const auto document = ReadDocument(text);
  return document ? "read" : document.error().reason;
}

TEST(Document, KnowsTheBytesOfPlainAndQuotedScalars) {
  EXPECT_EQ(Scalars("a: b c # d\n"), "a=[a] b c=[b c]");
  EXPECT_EQ(Scalars("a: 'it''s'\n\"b\\n\": \"x\\\"y\"\n"),
            "a=[a] it's=[it''s] b\n=[b\\n] x\"y=[x\\\"y]");
  EXPECT_EQ(Scalars("a: one\n  two\n\n  three\nb: \"x\n  y\"\n"),
            "a=[a] one two\nthree=[one\n  two\n\n  three] b=[b] x y=[x\n  y]");
  EXPECT_EQ(Scalars("a: it's#1 {x}\n"), "a=[a] it's#1 {x}=[it's#1 {x}]");
  EXPECT_EQ(Scalars("- a\n- - b\n  - c: d\n"), "a=[a] b=[b] c=[c] d=[d]");
  EXPECT_EQ(Scalars("? a\n: b\n"), "a=[a] b=[b]");
}

TEST(Document, PropertiesAreNoPartOfAValue) {
  EXPECT_EQ(Scalars("a: &x !!str  1Gi\nb: !local 'q'\n&k c: d\n"),
            "a=[a] 1Gi=[1Gi] b=[b] q=[q] c=[c] d=[d]");
  EXPECT_EQ(Scalars("a: !!str\n\"b\": c\n"), "a=[a] =[] b=[b] c=[c]");
  EXPECT_EQ(Scalars("a: !!str\nb: c\n"), "a=[a] =[] b=[b] c=[c]");
}

TEST(Document, FlowStyle) {
  EXPECT_EQ(Scalars("{a: [1, 'x', \"y\" , {b: c}], d : e}\n"),
            "a=[a] 1=[1] x=[x] y=[y] b=[b] c=[c] d=[d] e=[e]");
  EXPECT_EQ(Collections("a: {b: 1, c: [ 2, 3 ] } # x\nd: []\n"),
            "<a: {b: 1, c: [ 2, 3 ] } # x\nd: []><{b: 1, c: [ 2, 3 ] }><[ 2, 3 ]><[]>");
  EXPECT_EQ(Collections("{a: it's}"), "<{a: it's}>");
  EXPECT_EQ(Collections("{a: , b, c: # }\n }"), "<{a: , b, c: # }\n }>");
  EXPECT_EQ(Collections("[a: b, c]"), "<[a: b, c]><a: b>");
}

TEST(Document, BlockScalars) {
  EXPECT_EQ(Scalars("a: |\n  x\n    y\n\nb: >-\n  p\n  q\nc: d\n"),
            "a=[a] x\n  y\n=[  x\n    y] b=[b] p q=[  p\n  q] c=[c] d=[d]");
  EXPECT_EQ(Scalars("- |\n  x\n- y\n"), "x\n=[  x] y=[y]");
  EXPECT_EQ(Scalars("a: # c\n  - |2\n     x\n    y\nb: c\n"),
            "a=[a]  x\ny\n=[     x\n    y] b=[b] c=[c]");
  EXPECT_EQ(Scalars("a: |"), "a=[a] =[]");
}

TEST(Document, LineEndsMarksAndOtherAlphabets) {
  EXPECT_EQ(Scalars("a: 1\r\nb: 'x'\r\nc: |\r\n  t\r\nd: e\r\n"),
            "a=[a] 1=[1] b=[b] x=[x] c=[c] t\n=[  t] d=[d] e=[e]");
  EXPECT_EQ(Scalars("\xef\xbb\xbf"
                    "a: 1\nb: 2\n"),
            "a=[a] 1=[1] b=[b] 2=[2]");
  EXPECT_EQ(Scalars("größe: {名: 3Gi, x: \"é\"} # ü\nb: 2"),
            "größe=[größe] 名=[名] 3Gi=[3Gi] x=[x] é=[é] b=[b] 2=[2]");
  EXPECT_EQ(Scalars("a:\t1\t# x\nb:\t'2'\n"), "a=[a] 1=[1] b=[b] 2=[2]");
}

TEST(Document, Nulls) {
  const auto document = ReadDocument("a:\nb: ~\nc: null # x\nnullable: 1\nd:\nnull: 2\n");
  ASSERT_TRUE(document.has_value());
  const NodeId root = document->roots().front();
  for (const char* key : {"a", "b", "c", "d"})
    EXPECT_TRUE(document->Is(document->Find(root, key), NodeKind::kNull)) << key;
  EXPECT_EQ(document->At(document->Find(root, "a")).begin, 2);
  EXPECT_EQ(document->At(document->Find(root, "a")).end, 2);
  EXPECT_EQ(document->At(document->Find(root, "b")).end, 7);
  EXPECT_EQ(document->Text(document->Find(root, "nullable")), "1");
}

TEST(Document, SeveralDocuments) {
  const auto document = ReadDocument("%YAML 1.2\n---\na: 1\n...\n# c\n---\n---\nb: 2\n--- c\n");
  ASSERT_TRUE(document.has_value()) << document.error().message;
  EXPECT_EQ(document->roots().size(), 3);
  EXPECT_EQ(Reason("{a: 1} {b: 2}"), "syntax");
  EXPECT_EQ(Reason("{\"a\": 1}\n{\"b\": 2}"), "syntax");
}

TEST(Document, AliasesAreFollowedAndMarked) {
  const auto document = ReadDocument("a: &x {m: 1}\nb: *x\nc:\n  <<: *x\n  n: 2\nd: 3\n");
  ASSERT_TRUE(document.has_value());
  const NodeId root = document->roots().front();
  const NodeId through = document->Find(root, {"b", "m"});
  EXPECT_EQ(document->Text(through), "1");
  EXPECT_EQ(through, document->Find(root, {"a", "m"}));
  EXPECT_EQ(through, document->Find(root, {"c", "m"}));
  EXPECT_TRUE(document->At(through).shared);
  EXPECT_FALSE(document->At(document->Find(root, {"c", "n"})).shared);
  EXPECT_FALSE(document->At(document->Find(root, "d")).shared);
  EXPECT_EQ(document->Members(document->Find(root, "c")).size(), 2);
  EXPECT_EQ(Reason("a: &x [*x]"), "syntax");
  EXPECT_EQ(Reason("a: *nothing"), "syntax");
}

TEST(Document, OwnKeysWinOverMergedOnesAndLaterOverEarlier) {
  const auto document =
      ReadDocument("- &a {k: 1, l: 1}\n- &b {k: 2, m: 2}\n- {<<: [*a, *b], l: 3, n: 4, n: 5}\n");
  ASSERT_TRUE(document.has_value());
  const NodeId map = document->Items(document->roots().front())[2].value;
  const auto text = [&](const char* key) { return document->Text(document->Find(map, key)); };
  EXPECT_EQ(text("k"), "1");
  EXPECT_EQ(text("l"), "3");
  EXPECT_EQ(text("m"), "2");
  EXPECT_EQ(text("n"), "5");
  EXPECT_EQ(document->Members(map).size(), 4);
}

TEST(Document, Json) {
  EXPECT_EQ(Scalars("{\"a\": [1, -2.5e3, true, null, \"x\\u00e9\\ud83d\\ude00\\/\"]}"),
            "a=[a] 1=[1] -2.5e3=[-2.5e3] true=[true] xé😀/=[x\\u00e9\\ud83d\\ude00\\/]");
  EXPECT_EQ(Collections("\t{ \"a\" : [ ] }\n"), "<{ \"a\" : [ ] }><[ ]>");
  for (const char* text :
       {"{\"a\": 1,}", "[1 2]", "{\"a\"}", "[\"\\x\"]", "[\"\\ud800\"]", "[\"a", "["})
    EXPECT_EQ(Reason(text) == "read" && ReadDocument(text)->is_json(), false) << text;
  EXPECT_TRUE(ReadDocument("{\"a\": {\"b\": [{}]}}")->is_json());
  EXPECT_FALSE(ReadDocument("{a: b}")->is_json());
}

TEST(Document, MergesAreFoundOrTheTextIsRefused) {
  std::string text = "m0: &m0 {x: 1}\n";
  for (int i = 1; i < 8; ++i)
    text += "m" + std::to_string(i) + ": &m" + std::to_string(i) + " {<<: *m" +
            std::to_string(i - 1) + "}\n";
  const auto document = ReadDocument(text);
  ASSERT_TRUE(document.has_value());
  const NodeId root = document->roots().front();
  EXPECT_EQ(document->Text(document->Find(root, {"m4", "x"})), "1");
  EXPECT_FALSE(document->exhausted());
  EXPECT_EQ(document->Find(root, {"m7", "x"}), kNoNode);
  EXPECT_TRUE(document->exhausted());
}

TEST(Document, RefusesWhatCannotBeText) {
  EXPECT_EQ(Reason(std::string_view("a: \0b", 5)), "syntax");
  EXPECT_EQ(Reason("a: \x04 b"), "syntax");
  EXPECT_EQ(Reason("a: \xff"), "syntax");
  EXPECT_EQ(Reason("a: 1\rb: 2"), "syntax");
  EXPECT_EQ(Reason(std::string(kMaxText + 1, ' ')), "too_large");
  EXPECT_EQ(Reason(std::string(1'000'000, '[')), "syntax");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_EQ(Reason(deep), "syntax");
  std::string many = "[";
  for (int i = 0; i < 500'000; ++i) many += "1,";
  EXPECT_EQ(Reason(many + "1]"), "too_large");
  EXPECT_EQ(Reason("a: [" + many + "1]]"), "too_large");
}

TEST(Document, PlaceholdersAreTextOfTheirValue) {
  EXPECT_EQ(Scalars("a: {{ .x }}\nb: \"{{ .y | default \"z\" }}\"\nc: {{a}}:{{b}} # {{ c }}\n"),
            "a=[a] {{ .x }}=[{{ .x }}] b=[b] {{ .y | default \"z\" }}=[{{ .y | default \"z\" }}] "
            "c=[c] {{a}}:{{b}}=[{{a}}:{{b}}]");
  EXPECT_EQ(Scalars("a: |\n  x\n  {{ y }}\n  z\n"), "a=[a] x\n{{ y }}\nz\n=[  x\n  {{ y }}\n  z]");
  EXPECT_EQ(Scalars("a: ${{ x }}\nb: {c: ${D}}\n"),
            "a=[a] ${{ x }}=[${{ x }}] b=[b] c=[c] ${D}=[${D}]");
  EXPECT_EQ(Scalars("{{- /* a\n  b */}}\n{{ $x := 1 }}\na: 1\n"), "a=[a] 1=[1]");
  EXPECT_EQ(Scalars("{# x\n y #}\na: 1\n"), "a=[a] 1=[1]");
  EXPECT_EQ(Scalars("a: \"${#x} {{\"\n"), "a=[a] ${#x} {{=[${#x} {{]");
}

TEST(Document, PlaceholdersCostTheirLength) {
  const auto repeat = [](std::string_view piece) {
    std::string text = "# ";
    for (int i = 0; i < 100'000; ++i) text += piece;
    return text;
  };
  for (const char* piece :
       {"{{a}}", "{{", "${", "${{", "%{ ", "{# ", "{%", "{{a}}\n", "# ", "{{/*x*/}}"})
    EXPECT_NE(Reason(repeat(piece) + "\na: [b\n"), "read") << piece;
}

TEST(Document, PlaceholdersThatDecideTheStructureAreRefused) {
  const auto line = [](std::string_view text) {
    const auto document = ReadDocument(text);
    return document ? std::string("read")
                    : document.error().reason + " " + std::to_string(document.error().line);
  };
  EXPECT_EQ(line("a:\n  {{ include \"x\" }}\nb: 1\n"), "templated 2");
  EXPECT_EQ(line("a: 1\n{{- if .x }}\nb: 1\n{{- end }}\n"), "templated 2");
  EXPECT_EQ(line("a: 1\n{{ if x }}b: 2{{ end }}\n"), "templated 2");
  EXPECT_EQ(line("{% for x in y %}\na: 1\n{% endfor %}\n"), "templated 1");
  EXPECT_EQ(line("# {{ x }}\na: [{{ if }}\nb\n"), "templated 2");
  EXPECT_EQ(line("{{/* x */}}{{ if y }}\na: 1\n"), "templated 1");
  EXPECT_EQ(line("a: 1 # {{ if y }}\n"), "read");
  EXPECT_EQ(line("a: 1\n%{ if x }\nb: 1\n%{ endif }\n"), "templated 2");
}

}  // namespace
}  // namespace expanse::workload::kubernetes
