#include "collect/logs/secret_rules.h"

#include <array>
#include <string>

#include "base/text.h"

// A name whose last word says password; any value behind it is one.
#define EXPANSE_PASSWORD_NAME \
  R"((?i:(?:[a-z0-9]+[_.-])*(?:[a-z0-9]*(?:password|passwd|passphrase)|pwd|pgpassword|secret)))"
// A name whose last word says token or key; the value must look random as well, because machine
// learning logs are full of tokens and keys that are no secrets.
#define EXPANSE_KEY_NAME                                                                      \
  R"((?i:(?:[a-z0-9]+[_.-])*[a-z0-9]*(?:token|api[_-]?key|access[_-]?key|secret[_-]?key|)"    \
  R"(private[_-]?key|private[_-]?key[_-]?id|account[_-]?key|shared[_-]?access[_-]?key|)"      \
  R"(signing[_-]?key|encryption[_-]?key|auth[_-]?key|license[_-]?key|access[_-]?key[_-]?id|)" \
  R"(client[_-]?secret|credentials?)))"
#define EXPANSE_SEPARATOR R"([ \t]*(?:=>|:=|=|:)[ \t]*)"

namespace expanse::collect {
namespace {

// Formats as their providers document them; prefixes make them recognisable without a name.
constexpr SecretRule kRules[] = {
    {"private key block", "private key",
     R"((?s)(-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?)"
     R"((?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)))"},
    // The beginning was cut off: base64 lines in front of an END line.
    {"private key remainder", "private key",
     R"(((?:[A-Za-z0-9+/=]{1,128}(?:\r?\n|\\n))+-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----))"},
    // kubeconfig, Secrets of Kubernetes, CI variables: such a block in base64 ("-----BEGIN ").
    {"encoded key block", "ls0tls1crudjti", R"((LS0tLS1CRUdJTi[A-Za-z0-9+/=]{8,}))"},
    {"password assignment, quoted", "pass|pwd|secret",
     EXPANSE_PASSWORD_NAME R"(\\?["']?)" EXPANSE_SEPARATOR
                           R"([bru]?\\?"((?:[^"\\\r\n]|\\[^\r\n])+))",
     SecretCheck::kValue},
    {"password assignment, single quotes", "pass|pwd|secret",
     EXPANSE_PASSWORD_NAME R"(["']?)" EXPANSE_SEPARATOR R"([bru]?'([^'\r\n]+))",
     SecretCheck::kValue},
    {"password assignment", "pass|pwd|secret",
     EXPANSE_PASSWORD_NAME R"(\\?["']?)" EXPANSE_SEPARATOR R"(([^\s"'\\,;&<>(){}|`]+))",
     SecretCheck::kValue},
    {"key assignment", "token|key|secret|credential",
     EXPANSE_KEY_NAME R"(\\?["']?)" EXPANSE_SEPARATOR
                      R"((?:[bru]?\\?["'])?([A-Za-z0-9+/_.~=:%-]{8,}))",
     SecretCheck::kRandom},
    {"password flag", "pass|pwd|secret",
     R"((?:^|[\s"'=])--?)" EXPANSE_PASSWORD_NAME R"([ \t]+["']?([^\s"'-][^\s"']*))",
     SecretCheck::kValue},
    {"key flag", "token|key|secret|credential",
     R"((?:^|[\s"'=])--?)" EXPANSE_KEY_NAME R"([ \t]+["']?([A-Za-z0-9+/_.~=:%-]{8,}))",
     SecretCheck::kRandom},
    {"netrc", "password", R"((?i)\blogin[ \t]+\S+\s+password[ \t]+(\S+))"},
    {"URL with a password", "://", R"([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*:([^\s/"'<>]+)@)"},
    {"URL with a token", "://", R"([A-Za-z][A-Za-z0-9+.-]*://([A-Za-z0-9_~.%-]{16,})@)",
     SecretCheck::kRandom},
    {"signed URL", "sig|credential|key=|code=",
     R"((?i)[?&](?:sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|)"
     R"(x-goog-signature|x-goog-credential|key|code)=([^\s&"'#<>]{8,}))",
     SecretCheck::kRandom},
    {"Authorization header", "authorization",
     R"((?i)\b(?:proxy-)?authorization\\?["']?[ \t]*[:=][ \t]*\\?["']?)"
     R"((?:(?:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)[ \t]+)?([^\r\n"'\\]+))",
     SecretCheck::kValue},
    {"bearer token", "bearer", R"((?i)\bbearer[ \t]+([A-Za-z0-9._~+/=-]{12,}))",
     SecretCheck::kRandom},
    {"cookie", "cookie", R"((?i)\b(?:set-)?cookie[ \t]*:[ \t]*([^\r\n"']+))", SecretCheck::kValue},
    {"curl credentials", "curl",
     R"(\bcurl\b[^\r\n]*?[ \t](?:-u|--user)[ \t=]?["']?[^\s:"']+:([^\s"']+))"},
    {"JWT", "eyj", R"(\b(eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,3}))"},
    {"AWS key id", "akia|asia|abia|acca", R"(\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b)"},
    {"Google API key", "aiza", R"(\b(AIza[A-Za-z0-9_-]{35}))"},
    {"Google OAuth token", "ya29.|gocspx-",
     R"(\b(ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}))"},
    {"Azure client secret", "q~", R"(((?:[A-Za-z0-9_~.-]{3})[0-9]Q~[A-Za-z0-9_~.-]{31,40}))"},
    {"GitHub token", "gh|github_pat_",
     R"(\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}))"},
    {"GitLab token", "gl",
     R"(\b(gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|soat|oas)-[A-Za-z0-9_.-]{20,}))"},
    {"Slack token", "xox|xapp-", R"(\b(xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}))"},
    {"Slack webhook", "hooks.slack.com",
     R"(hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/_-]{20,}))"},
    {"Hugging Face token", "hf_|api_org_", R"(\b((?:hf|api_org)_[A-Za-z0-9]{30,}))"},
    {"OpenAI, Anthropic and alike", "sk-", R"(\b(sk-[A-Za-z0-9_-]{20,}))", SecretCheck::kRandom},
    {"NVIDIA key", "nvapi-", R"(\b(nvapi-[A-Za-z0-9_-]{20,}))"},
    {"Stripe key", "k_live_|k_test_", R"(\b([rs]k_(?:live|test)_[A-Za-z0-9]{16,}))"},
    {"package registries", "npm_|pypi-|dckr_pat_|rubygems_",
     R"(\b(npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|dckr_pat_[A-Za-z0-9_-]{20,}|rubygems_[a-f0-9]{40,}))"},
    {"other providers", "sg.|dop_v1_|dapi|hvs.|hvb.|tskey-|age-secret-key-|glsa_|atatt3|r8_|gsk_",
     R"(\b(SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|dop_v1_[a-f0-9]{40,}|dapi[a-f0-9]{32}|)"
     R"(hv[sb]\.[A-Za-z0-9_-]{20,}|tskey-[A-Za-z0-9-]{20,}|AGE-SECRET-KEY-1[A-Z0-9]{50,}|)"
     R"(glsa_[A-Za-z0-9_]{30,}|ATATT3[A-Za-z0-9_=-]{40,}|r8_[A-Za-z0-9]{30,}|gsk_[A-Za-z0-9]{40,}))"},
    {"our own secrets", "exp_", R"(\b(exp_[a-z]+_[A-Za-z0-9_-]{20,}))", SecretCheck::kRandom},
};

constexpr std::array<std::string_view, 17> kSecretWords = {
    "password", "passwd",     "passphrase",  "pwd",        "secret",       "token",
    "apikey",   "accesskey",  "secretkey",   "privatekey", "accountkey",   "signingkey",
    "authkey",  "credential", "credentials", "licensekey", "encryptionkey"};

}  // namespace

std::span<const SecretRule> SecretRules() { return kRules; }

bool IsSecretName(std::string_view name) {
  std::string plain;
  for (char c : base::ToLower(name)) {
    if (c != '_' && c != '-' && c != '.') plain += c;
  }
  for (std::string_view word : kSecretWords) {
    if (plain.ends_with(word)) return true;
  }
  return false;
}

}  // namespace expanse::collect
