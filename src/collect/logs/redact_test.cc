#include "collect/logs/redact.h"

#include <gtest/gtest.h>

#include "base/crypto.h"
#include "collect/logs/secret_rules.h"

namespace expanse::collect {
namespace {

// Secrets are put together from pieces, so that scanners of this repository find nothing in it.
std::string Join(std::string_view a, std::string_view b) { return std::string(a) + std::string(b); }

struct Sample {
  std::string before;
  std::string secret;
  std::string after;
};

const std::string k36 = "Ab3dEf6hIj9lMn2pQr5tUv8xYz1bCd4fGh7j";
const std::string k40 = k36 + "K2m4";
const std::string kHex40 = "3f9a0c5d7e1b2468ace013579bdf02468ace1357";

std::vector<Sample> Secrets() {
  return {
      {"password=", "hunter2", ""},
      {"    client-key-data: ", Join("LS0tLS1CRUdJ", "TiBSU0EgUFJJVkFURSBLRVktLS0tLQo="), "\n"},
      {"password = ", "hunter2", " # from vault"},
      {"db_password: ", "s3cr3t!pass", ""},
      {"DB_PASSWD=", "Tr0ub4dor", "&x=1"},
      {"{\"password\": \"", "two words \\\" and a quote", "\", \"user\": \"kim\"}"},
      {"{'passphrase': '", "it is long", "'}"},
      {"export MYSQL_PWD=", "abc", ""},
      {"client_secret=", "plainword", ""},
      {"HF_TOKEN=", "zz9plural", "\n"},
      {"api_key: \"", "k3yk3yk3yk3y", "\""},
      {"X-Api-Key: ", "00aa11bb22cc33dd", "\r\n"},
      {"AWS_SECRET_ACCESS_KEY=", "wJalr/XUtn+FEMI0K7MDENG1bPxRfiCYqqqqqqqq", ""},
      {"WANDB_API_KEY=", kHex40, " python train.py"},
      {"AccountKey=", "bm90IGEga2V5IGJ1dCBsb25nIGVub3VnaCB0byBiZSBvbmU0==", ";Endpoint=x"},
      {"run --password ", "swordfish", " --verbose"},
      {"tool --hf-token ", "tok12345678", ""},
      {"machine h login me password ", "pw", "\n"},
      {"postgres://kim:", "p@ss", "@db.example:5432/x"},
      {"https://", "0123456789abcdef0123", "@git.example/x.git"},
      {"GET /x?sig=", "aB3%2Fdeadbeef00", "&se=2026"},
      {"Authorization: Bearer ", "abc.def-123_456", "\r\n"},
      {"authorization: Basic ", "a2ltOnB3", "\n"},
      {"'Authorization': 'Token ", "0f0f0f", "'"},
      {"Set-Cookie: ", "session=42; HttpOnly", "\r\n"},
      {"curl -s -u kim:", "pw", " https://x"},
      {"got ", Join("eyJhbGciOiJI", "UzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIz"), " ok"},
      {"id ", Join("AKIA", "ABCDEFGHIJ234567"), "."},
      {"key ", Join("AIza", k36.substr(0, 35)), ""},
      {"", Join("ya29.", k36), ""},
      {"azure ", Join("abc8Q~", k36.substr(0, 34)), ""},
      {"clone with ", Join("ghp_", k36), "!"},
      {"", Join("github_pat_", k40), ""},
      {"ci ", Join("glpat-", k36.substr(0, 20)), " end"},
      {"bot ", Join("xoxb-", "123456789012-abcdefABCDEF"), ""},
      {"https://hooks.slack.com/services/", "T00000000/B00000000/abcdefgh12345678", ""},
      {"login ", Join("hf_", k36), ""},
      {"openai ", Join("sk-", "proj-" + k36), ""},
      {"claude ", Join("sk-", "ant-api03-" + k36), "\""},
      {"ngc ", Join("nvapi-", k40), ""},
      {"pay ", Join("sk_live_", k36.substr(0, 24)), ""},
      {"mail ", Join("SG.", k36.substr(0, 22) + "." + k36), ""},
      {"vault ", Join("hvs.", k36), ""},
      {"ours ", base::NewSecret("exp_compute_"), " ok"},
      {"ours ", base::NewSecret("exp_user_"), ""},
      {"", Join("-----BEGIN RSA ", "PRIVATE KEY-----\nAAAA\nBBBB\n-----END RSA PRIVATE KEY-----"),
       "\nnext"},
      {"", Join("-----BEGIN ", "PRIVATE KEY-----\nAAAA\nBBB"), ""},
      {"tail of a key:\n", Join("AAAABBBBCCCC\nDDDD==\n", "-----END OPENSSH PRIVATE KEY-----"),
       "\n"},
      {"\xff\xfe password=", "b\xc3\xa9ta\xff", "\n\x80"},
  };
}

TEST(Redact, TakesSecretsAndKeepsEverythingElse) {
  for (const Sample& sample : Secrets()) {
    const std::string text = sample.before + sample.secret + sample.after;
    const RedactedText result = Redact(text);
    EXPECT_EQ(result.text, sample.before + std::string(kRedactionMark) + sample.after) << text;
    EXPECT_EQ(result.redactions, 1U) << text;
  }
}

TEST(Redact, IsIdempotent) {
  for (const Sample& sample : Secrets()) {
    const std::string once = Redact(sample.before + sample.secret + sample.after).text;
    const RedactedText twice = Redact(once);
    EXPECT_EQ(twice.text, once);
    EXPECT_EQ(twice.redactions, 0U);
  }
}

TEST(Redact, LeavesWhatOnlyLooksLikeASecret) {
  const std::string_view kHarmless[] = {
      "max_tokens: 4096, num_tokens=128, tokens/s: 1200.5",
      "tokenizer=llama-tokenizer-v3-fast pad_token=<pad> eos_token: </s>",
      "next_token=transformer token_count=12345678 token_type_ids",
      "password_file=/etc/app/pw  passwordless login is on",
      "Password for kim: ",
      "password: ****** and secret=None and token: null",
      "password=${DB_PASSWORD} secret=$SECRET",
      "key=value primary_key=id sort_key: created_at",
      "author=Ada authority: local authentication: enabled",
      "http://localhost:8080/path?x=1 and https://example.org/a@b",
      "mail kim@example.org at 10:30",
      "task-0123456789abcdefghijklm desk-top risk-free",
      "the bearer of this message",
      "commit 3f9a0c5d7e1b2468ace013579bdf02468ace1357",
      "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
      "epoch 3 loss=0.123 lr=1e-4 step 1000/2000",
      "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
      "sk-learn is scikit-learn",
      "monkey: banana, turkey=12345678x",
  };
  for (std::string_view text : kHarmless) {
    const RedactedText result = Redact(text);
    EXPECT_EQ(result.text, text);
    EXPECT_EQ(result.redactions, 0U) << text;
  }
}

TEST(Redact, CountsEachSecret) {
  const RedactedText result = Redact("password=a1 user=kim\nurl=ftp://x:y@h\n");
  EXPECT_EQ(result.text, "password=[redacted] user=kim\nurl=ftp://x:[redacted]@h\n");
  EXPECT_EQ(result.redactions, 2U);
}

TEST(Redact, SeesAValueBehindASecretFlagArgument) {
  std::uint32_t count = 0;
  const auto out = RedactArguments({"tool", "--token", "abc", "--max-tokens", "100",
                                    "--password=xy", "--secret", "--verbose", "in.txt"},
                                   &count);
  EXPECT_EQ(out,
            (std::vector<std::string>{"tool", "--token", "[redacted]", "--max-tokens", "100",
                                      "--password=[redacted]", "--secret", "--verbose", "in.txt"}));
  EXPECT_EQ(count, 2U);
}

TEST(Redact, KnowsSecretNames) {
  EXPECT_TRUE(IsSecretName("--hf-token"));
  EXPECT_TRUE(IsSecretName("API_KEY"));
  EXPECT_FALSE(IsSecretName("max_tokens"));
  EXPECT_FALSE(IsSecretName("tokenizer"));
  EXPECT_FALSE(IsSecretName("token_count"));
}

TEST(Redact, StaysLinearOnHostileInput) {
  std::string text;
  while (text.size() < 200'000) text += "password=\"\\";
  EXPECT_LT(Redact(text).text.size(), text.size() * 2);
}

// `redacted` with every mark replaced by what it stands for.
std::string PutBack(const PlacedRedaction& redacted, std::string_view original) {
  std::string out;
  std::size_t at = 0;
  for (const RedactedSpan& span : redacted.spans) {
    EXPECT_EQ(redacted.text.substr(span.at, kRedactionMark.size()), kRedactionMark);
    out += redacted.text.substr(at, span.at - at);
    out += original.substr(span.original.begin, span.original.end - span.original.begin);
    at = span.at + kRedactionMark.size();
  }
  return out + redacted.text.substr(at);
}

TEST(RedactWithPlaces, KnowsWhatEveryMarkStandsFor) {
  std::string all = "[redacted] by hand\n";
  for (const Sample& sample : Secrets()) {
    const std::string text = sample.before + sample.secret + sample.after;
    const PlacedRedaction redacted = RedactWithPlaces(text);
    EXPECT_EQ(redacted.text, Redact(text).text);
    EXPECT_FALSE(redacted.spans.empty()) << text;
    EXPECT_EQ(PutBack(redacted, text), text);
    all += text + "\n";
  }
  const PlacedRedaction redacted = RedactWithPlaces(all);
  EXPECT_EQ(redacted.text, Redact(all).text);
  EXPECT_EQ(PutBack(redacted, all), all);
  EXPECT_TRUE(RedactWithPlaces("plain").spans.empty());
}

}  // namespace
}  // namespace expanse::collect
