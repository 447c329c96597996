#include "workload/nomad/evaluate.h"

#include <gtest/gtest.h>

#include <string>

namespace expanse::workload::hcl {
namespace {

std::string Show(const Value& value) {
  switch (value.type()) {
    case Value::Type::kNull:
      return "null";
    case Value::Type::kBool:
    case Value::Type::kNumber:
      return value.AsString().value_or("?");
    case Value::Type::kString:
      return "'" + value.text() + "'";
    case Value::Type::kList: {
      std::string out;
      for (const Value& item : value.list()) out += (out.empty() ? "" : ",") + Show(item);
      return "[" + out + "]";
    }
    case Value::Type::kObject: {
      std::string out;
      for (const auto& [key, member] : value.object()) {
        out += (out.empty() ? "" : ",") + key + "=" + Show(member);
      }
      return "{" + out + "}";
    }
    case Value::Type::kUnresolved:
      return "? " + value.reason();
  }
  return "";
}

constexpr std::string_view kNames = R"hcl(
variable "n" {
  type    = number
  default = "3"
}
variable "list" { default = ["a", "b", "c"] }
variable "map" { default = { x = 1, y = { z = "deep" } } }
variable "none" {}
variable "bad" {
  type    = number
  default = "three"
}
locals {
  double = var.n * 2
  loop   = local.pool
  pool   = [local.loop]
  self   = local.self
  part   = [var.none, "known"]
}
)hcl";

std::string Evaluated(std::string_view expression,
                      const std::map<std::string, std::string>& given = {}) {
  const std::string text = std::string(kNames) + "result = " + std::string(expression) + "\n";
  const auto body = ParseBody(text);
  if (!body) return "refused: " + body.error().message;
  Evaluator evaluator(text, *body, given);
  return Show(evaluator.Evaluate(body->attributes.back().value));
}

TEST(Evaluate, OperatorsAndConditionals) {
  EXPECT_EQ(Evaluated("1 + 2 * 3 - 4 / 2"), "5");
  EXPECT_EQ(Evaluated("7 % 4"), "3");
  EXPECT_EQ(Evaluated("\"5\" + 1"), "6");
  EXPECT_EQ(Evaluated("1 / 0"), "? division by zero");
  EXPECT_EQ(Evaluated("!true || 2 >= 2 && 1 < 0"), "false");
  EXPECT_EQ(Evaluated("\"a\" == \"a\" ? \"yes\" : \"no\""), "'yes'");
  EXPECT_EQ(Evaluated("1 == \"1\""), "false");
  EXPECT_EQ(Evaluated("[1, {a = 2}] == [1, {a = 2}]"), "true");
  EXPECT_EQ(Evaluated("0.1 + 0.25"), "0.35");
  EXPECT_EQ(Evaluated("\"x\" * 2"), "? \"*\" of what is no number");
  EXPECT_EQ(Evaluated("1e308 * 10"), "? a number out of range");
}

TEST(Evaluate, NamesAndMembers) {
  EXPECT_EQ(Evaluated("var.n + 1"), "4");
  EXPECT_EQ(Evaluated("local.double"), "6");
  EXPECT_EQ(Evaluated("var.list[1]"), "'b'");
  EXPECT_EQ(Evaluated("var.list.2"), "'c'");
  EXPECT_EQ(Evaluated("var[\"n\"]"), "3");
  EXPECT_EQ(Evaluated("var.map.y.z"), "'deep'");
  EXPECT_EQ(Evaluated("var.map[\"x\"]"), "1");
  EXPECT_EQ(Evaluated("var.list[7]"), "? no such element");
  EXPECT_EQ(Evaluated("var.map.w"), "? no element \"w\"");
  EXPECT_EQ(Evaluated("[{a = 1}, {a = 2}][*].a"), "[1,2]");
  EXPECT_EQ(Evaluated("{a = 5}.*.a"), "[5]");
}

TEST(Evaluate, WhatIsNotKnownSaysWhy) {
  EXPECT_EQ(Evaluated("var.none"), "? var.none has no value");
  EXPECT_EQ(Evaluated("var.other"), "? var.other is not declared");
  EXPECT_EQ(Evaluated("1 + var.none"), "? var.none has no value");
  EXPECT_EQ(Evaluated("var.bad"), "? var.bad: a value that is no number");
  EXPECT_EQ(Evaluated("local.self"), "? local.self depends on itself");
  EXPECT_EQ(Evaluated("local.loop"), "[? local.loop depends on itself]");
  EXPECT_EQ(Evaluated("local.part[1]"), "'known'");
  EXPECT_EQ(Evaluated("local.part[0]"), "? var.none has no value");
  EXPECT_EQ(Evaluated("length(local.part)"), "2");
  EXPECT_EQ(Evaluated("join(\",\", local.part)"), "? an argument of join() that is not known");
  EXPECT_EQ(Evaluated("file(\"x\")"), "? function file()");
  EXPECT_EQ(Evaluated("uuidv4()"), "? function uuidv4()");
  EXPECT_EQ(Evaluated("timestamp()"), "? function timestamp()");
  EXPECT_EQ(Evaluated("upper()"), "? wrong number of arguments of upper()");
}

TEST(Evaluate, GivenValuesTakeTheirType) {
  EXPECT_EQ(Evaluated("var.n", {{"n", "8"}}), "8");
  EXPECT_EQ(Evaluated("local.double", {{"n", "8"}}), "16");
  EXPECT_EQ(Evaluated("var.n", {{"n", "eight"}}), "? var.n: a value that is no number");
  EXPECT_EQ(Evaluated("var.none", {{"none", "text"}}), "'text'");
  EXPECT_EQ(Evaluated("var.none", {{"unknown", "text"}}), "? var.none has no value");
}

TEST(Evaluate, GivenListsAreExpressions) {
  const std::string text = "variable \"l\" { type = list(string) }\nresult = var.l[1]\n";
  const auto body = ParseBody(text);
  ASSERT_TRUE(body);
  const std::map<std::string, std::string> given = {{"l", "[\"a\", \"b\"]"}};
  Evaluator evaluator(text, *body, given);
  EXPECT_EQ(Show(evaluator.Evaluate(body->attributes[0].value)), "'b'");
  const std::map<std::string, std::string> broken = {{"l", "[\"a\""}};
  Evaluator other(text, *body, broken);
  EXPECT_EQ(Show(other.Evaluate(body->attributes[0].value)),
            "? the value given for var.l is not an expression");
}

TEST(Evaluate, TheClientsNamesStayText) {
  EXPECT_EQ(Evaluated("node.class"), "'${node.class}'");
  EXPECT_EQ(Evaluated("\"a-${NOMAD_ALLOC_INDEX}-${attr.unique.network.ip-address}\""),
            "'a-${NOMAD_ALLOC_INDEX}-${attr.unique.network.ip-address}'");
  EXPECT_EQ(Evaluated("env[\"HOME\"]"), "'${env[\"HOME\"]}'");
  EXPECT_EQ(Evaluated("upper(NOMAD_X)"), "'${NOMAD_X}'");
}

TEST(Evaluate, TemplatesAndFor) {
  EXPECT_EQ(Evaluated("\"${var.n}${true}-${\"x\"}\""), "'3true-x'");
  EXPECT_EQ(Evaluated("\"${var.list}\""), "['a','b','c']");
  EXPECT_EQ(Evaluated("\"x${var.list}\""), "? a value that is no text in a template");
  EXPECT_EQ(Evaluated("\"%{ if var.n > 2 }big%{ else }small%{ endif }\""), "'big'");
  EXPECT_EQ(Evaluated("\"%{ for i, x in var.list }${i}${x} %{ endfor }\""), "'0a 1b 2c '");
  EXPECT_EQ(Evaluated("[for x in var.list : upper(x) if x != \"b\"]"), "['A','C']");
  EXPECT_EQ(Evaluated("{for i, x in var.list : x => i}"), "{a=0,b=1,c=2}");
  EXPECT_EQ(Evaluated("{for x in [\"ab\", \"ac\"] : substr(x, 0, 1) => x...}"), "{a=['ab','ac']}");
  EXPECT_EQ(Evaluated("{for x in [1, 2] : \"k\" => x}"), "? \"for\" makes the key \"k\" twice");
  EXPECT_EQ(Evaluated("[for x in 5 : x]"), "? \"for\" over what is no collection");
}

struct Case {
  const char* call;
  const char* result;
};

TEST(Evaluate, Functions) {
  static constexpr Case kCases[] = {
      {"abs(-2)", "2"},
      {"ceil(1.2) + floor(1.8)", "3"},
      {"max(1, \"5\", 3)", "5"},
      {"min([4, 2]...)", "2"},
      {"pow(2, 10)", "1024"},
      {"log(8, 2)", "3"},
      {"signum(-4)", "-1"},
      {"parseint(\"ff\", 16)", "255"},
      {"tonumber(\"12\") + 1", "13"},
      {"tostring(1.5)", "'1.5'"},
      {"tobool(\"true\")", "true"},
      {"convert(\"7\", number)", "7"},
      {"lower(\"AbC\")", "'abc'"},
      {"upper(\"\u00e9\")", "? upper(): text that is not ASCII"},
      {"title(\"ab cd-e_f\")", "'Ab Cd-E_f'"},
      {"trim(\"xxaxx\", \"x\")", "'a'"},
      {"trimspace(\" a \")", "'a'"},
      {"trimprefix(\"v1.2\", \"v\")", "'1.2'"},
      {"trimsuffix(\"a.hcl\", \".hcl\")", "'a'"},
      {"chomp(\"a\\n\")", "'a'"},
      {"replace(\"a-b-c\", \"-\", \"_\")", "'a_b_c'"},
      {"split(\",\", \"a,b,\")", "['a','b','']"},
      {"join(\"-\", [\"a\", 1], [true])", "'a-1-true'"},
      {"substr(\"hello\", 1, 3)", "'ell'"},
      {"substr(\"hello\", -2, -1)", "'lo'"},
      {"strlen(\"abc\")", "3"},
      {"strrev(\"abc\")", "'cba'"},
      {"indent(2, \"a\\nb\")", "'a\n  b'"},
      {"format(\"%s-%03d-%.1f-%5s|%-4s|%v%%\", \"a\", 7, 2.25, \"r\", \"l\", [1, \"x\"])",
       "'a-007-2.2-    r|l   |[1,\"x\"]%'"},
      {"format(\"%x %X %q %t\", 255, 255, \"q\", true)", "'ff FF \"q\" true'"},
      {"format(\"%d\", 1.5)", "? format(): a value that is not formatted"},
      {"format(\"%s\")", "? format(): fewer values than are formatted"},
      {"format(\"%s\", 1, 2)", "? format(): more values than are formatted"},
      {"jsonencode({a = [1, true, null, \"<\"]})", "'{\"a\":[1,true,null,\"\\u003c\"]}'"},
      {"jsondecode(\"{\\\"a\\\": [1]}\").a[0]", "1"},
      {"jsondecode(\"{\")", "? jsondecode(): not JSON"},
      {"length({a = 1})", "1"},
      {"concat([1], [2, 3])", "[1,2,3]"},
      {"merge({a = 1, b = 1}, {b = 2})", "{a=1,b=2}"},
      {"lookup({a = 1}, \"b\", 9)", "9"},
      {"element([1, 2], 3)", "2"},
      {"keys({b = 1, a = 2})", "['a','b']"},
      {"values({b = 1, a = 2})", "[2,1]"},
      {"flatten([1, [2, [3]]])", "[1,2,3]"},
      {"reverse([1, 2])", "[2,1]"},
      {"reverse(\"ab\")", "'ba'"},
      {"0.1 + 0.2", "0.3"},
      {"9007199254740991 + 0", "9007199254740991"},
      {"slice([1, 2, 3], 1, 3)", "[2,3]"},
      {"coalesce(null, \"x\", \"y\")", "'x'"},
      {"coalescelist([], [1])", "[1]"},
      {"compact([\"\", \"a\"])", "['a']"},
      {"contains([1, 2], 2)", "true"},
      {"index([\"a\", \"b\"], \"b\")", "1"},
      {"distinct([1, 1, 2])", "[1,2]"},
      {"sort([\"b\", \"a\"])", "['a','b']"},
      {"toset([\"b\", \"a\", \"b\"])", "['a','b']"},
      {"zipmap([\"a\"], [1])", "{a=1}"},
      {"chunklist([1, 2, 3], 2)", "[[1,2],[3]]"},
      {"range(3)", "[0,1,2]"},
      {"range(4, 0, -2)", "[4,2]"},
      {"range(2000)", "? range(): more than 1024 numbers"},
  };
  for (const Case& one : kCases) EXPECT_EQ(Evaluated(one.call), one.result) << one.call;
}

// Text that would make more than memory holds, or take more than anybody waits.
TEST(Evaluate, GrowthIsBounded) {
  std::string text = "locals {\n  a0 = \"0123456789\"\n  l0 = [1, 2]\n";
  for (int i = 1; i <= 60; ++i) {
    const std::string n = std::to_string(i);
    const std::string before = std::to_string(i - 1);
    text += "  a" + n + " = \"${local.a" + before + "}${local.a" + before + "}\"\n";
    text += "  l" + n + " = [local.l" + before + ", local.l" + before + "]\n";
  }
  text += "}\nstring = local.a60\nlist = local.l60\n";
  text +=
      "product = [for a in range(1000) : [for b in range(1000) : [for c in range(1000) : c]]]\n";
  text += "wide = format(\"%1000000000d\", 1)\n";
  const auto body = ParseBody(text);
  ASSERT_TRUE(body);
  for (const Attribute& attribute : body->attributes) {
    Evaluator evaluator(text, *body, {});
    EXPECT_FALSE(evaluator.Evaluate(attribute.value).FullyKnown()) << attribute.name;
  }
}

}  // namespace
}  // namespace expanse::workload::hcl
