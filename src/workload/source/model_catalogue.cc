#include "workload/source/model_catalogue.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/text.h"

namespace expanse::workload::source {
namespace {

using Entry = std::pair<std::string_view, double>;  // millions of parameters

// Beginnings of the last part of a name, lower case, "_" as "-". The longest that fits counts.
// Sizes: the models' cards on the Hugging Face hub, torchvision's and timm's tables of weights.
constexpr auto kModels = std::to_array<Entry>({
    {"gpt2", 124},
    {"gpt2-medium", 355},
    {"gpt2-large", 774},
    {"gpt2-xl", 1558},
    {"distilgpt2", 82},
    {"bert-base", 110},
    {"bert-large", 340},
    {"bert-tiny", 4.4},
    {"distilbert", 66},
    {"roberta-base", 125},
    {"roberta-large", 355},
    {"xlm-roberta-base", 279},
    {"xlm-roberta-large", 561},
    {"deberta-base", 139},
    {"deberta-large", 405},
    {"deberta-v3-small", 141},
    {"deberta-v3-base", 184},
    {"deberta-v3-large", 435},
    {"electra-base", 110},
    {"electra-large", 335},
    {"albert-base", 12},
    {"albert-large", 18},
    {"t5-small", 60},
    {"t5-base", 223},
    {"t5-large", 770},
    {"flan-t5-small", 77},
    {"flan-t5-base", 248},
    {"flan-t5-large", 783},
    {"flan-t5-xl", 2850},
    {"flan-t5-xxl", 11300},
    {"mt5-small", 300},
    {"mt5-base", 580},
    {"mt5-large", 1230},
    {"bart-base", 139},
    {"bart-large", 406},
    {"pegasus", 568},
    {"longformer-base", 149},
    {"bigbird-roberta-base", 128},
    {"phi-1", 1300},
    {"phi-2", 2780},
    {"phi-3-mini", 3820},
    {"phi-3-small", 7390},
    {"phi-3-medium", 14000},
    {"phi-3.5-mini", 3820},
    {"phi-4", 14700},
    {"phi-4-mini", 3840},
    {"mixtral-8x7b", 46700},
    {"mixtral-8x22b", 141000},
    {"mistral-small", 22200},
    {"mistral-large", 123000},
    {"mistral-nemo", 12200},
    {"bloom", 176000},
    {"command-r", 35000},
    {"command-r-plus", 104000},
    {"dbrx", 132000},
    {"grok-1", 314000},
    {"deepseek-v2", 236000},
    {"deepseek-v2-lite", 15700},
    {"deepseek-v3", 671000},
    {"deepseek-r1", 671000},
    {"deepseek-r1-distill", 0},
    {"llama-4-scout", 109000},
    {"llama-4-maverick", 400000},
    {"gpt-oss-20b", 20900},
    {"gpt-oss-120b", 117000},
    {"resnet18", 11.7},
    {"resnet34", 21.8},
    {"resnet50", 25.6},
    {"resnet-50", 25.6},
    {"resnet101", 44.5},
    {"resnet152", 60.2},
    {"wide-resnet50", 68.9},
    {"resnext50", 25},
    {"resnext101", 88.8},
    {"vgg11", 133},
    {"vgg16", 138},
    {"vgg19", 144},
    {"alexnet", 61.1},
    {"densenet121", 8},
    {"densenet201", 20},
    {"mobilenet-v2", 3.5},
    {"mobilenet-v3", 5.5},
    {"efficientnet-b0", 5.3},
    {"efficientnet-b1", 7.8},
    {"efficientnet-b2", 9.1},
    {"efficientnet-b3", 12.2},
    {"efficientnet-b4", 19.3},
    {"efficientnet-b5", 30.4},
    {"efficientnet-b7", 66.3},
    {"inception-v3", 27.2},
    {"convnext-tiny", 28.6},
    {"convnext-base", 88.6},
    {"convnext-large", 198},
    {"vit-tiny", 5.7},
    {"vit-small", 22},
    {"vit-base", 86.6},
    {"vit-b", 86.6},
    {"vit-large", 304},
    {"vit-l", 304},
    {"vit-huge", 632},
    {"vit-h", 632},
    {"swin-tiny", 28.3},
    {"swin-t", 28.3},
    {"swin-base", 87.8},
    {"swin-b", 87.8},
    {"swin-large", 197},
    {"deit-base", 86.6},
    {"dinov2-base", 86.6},
    {"dinov2-large", 304},
    {"dinov2-giant", 1140},
    {"clip-vit-base", 151},
    {"clip-vit-large", 428},
    {"vit-b-32", 151},
    {"vit-b-16", 150},
    {"vit-l-14", 428},
    {"vit-h-14", 986},
    {"sam-vit-huge", 641},
    {"whisper-tiny", 39},
    {"whisper-base", 74},
    {"whisper-small", 244},
    {"whisper-medium", 769},
    {"whisper-large", 1550},
    {"wav2vec2-base", 95},
    {"wav2vec2-large", 317},
    {"hubert-base", 95},
    {"hubert-large", 317},
    {"stable-diffusion-v1", 1070},
    {"stable-diffusion-2", 1290},
    {"stable-diffusion-xl", 3500},
    {"sdxl", 3500},
    {"stable-diffusion-3-medium", 7700},
    {"flux.1", 16900},
    {"all-minilm-l6", 22.7},
    {"all-minilm-l12", 33.4},
    {"all-mpnet-base", 109},
    {"bge-small", 33.4},
    {"bge-base", 109},
    {"bge-large", 335},
    {"e5-small", 33.4},
    {"e5-base", 109},
    {"e5-large", 335},
    {"multilingual-e5-large", 560},
    {"unet", 31},
    {"yolov5s", 7.2},
    {"yolov8n", 3.2},
    {"yolov8s", 11.2},
    {"yolov8m", 25.9},
    {"yolov8l", 43.7},
    {"yolov8x", 68.2},
    {"esmfold", 3500},
    {"prot-bert", 420},
    {"prot-t5-xl", 3000},
    {"biogpt", 347},
    {"codellama", 0},
    {"scibert", 110},
    {"biobert", 110},
    {"pubmedbert", 110},
});

bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }

std::string Normalise(std::string_view name) {
  while (name.ends_with('/')) name.remove_suffix(1);
  const std::size_t slash = name.rfind('/');
  std::string last = base::ToLower(slash == std::string_view::npos ? name : name.substr(slash + 1));
  std::ranges::replace(last, '_', '-');
  return last;
}

// A number at `at`, moving behind it: "7", "1.5".
std::optional<double> ReadNumber(std::string_view text, std::size_t* at) {
  const std::size_t begin = *at;
  while (*at < text.size() && (base::IsDigit(text[*at]) || text[*at] == '.')) ++*at;
  const std::string_view digits = text.substr(begin, *at - begin);
  if (digits.empty() || !base::IsDigit(digits.front()) || !base::IsDigit(digits.back())) {
    return std::nullopt;
  }
  return base::ParseDouble(digits);
}

// "7b", "8x7b", "350m", "1.5b", with nothing of a word before or behind; the first one counts
// ("30b-a3b" has 30 billion of which 3 are used at a time).
std::optional<double> SizeInName(std::string_view name) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool begins =
        at == 0 || (!IsLetter(name[at - 1]) && !base::IsDigit(name[at - 1]) && name[at - 1] != '.');
    // "t33-650M", "llama3-8b"; but also "Llama8B", whose letters stand right before.
    const bool after_word = at > 2 && IsLetter(name[at - 1]) && IsLetter(name[at - 2]);
    if (!base::IsDigit(name[at]) || !(begins || after_word)) continue;
    std::size_t end = at;
    auto number = ReadNumber(name, &end);
    double experts = 1;
    if (number && end + 1 < name.size() && name[end] == 'x' && base::IsDigit(name[end + 1])) {
      experts = *number;
      ++end;
      number = ReadNumber(name, &end);
    }
    if (!number || end >= name.size() || *number <= 0) {
      at = std::max(at, end);
      continue;
    }
    const char unit = name[end];
    const bool ends =
        end + 1 == name.size() || !(IsLetter(name[end + 1]) || base::IsDigit(name[end + 1]));
    if (ends && (unit == 'b' || unit == 'm') && *number * experts < 20'000) {
      return *number * experts * (unit == 'b' ? 1e9 : 1e6);
    }
    at = end - 1;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> ModelParameters(std::string_view name) {
  if (name.size() > 400) return std::nullopt;
  const std::string last = Normalise(name);
  const Entry* best = nullptr;
  for (const Entry& entry : kModels) {
    const bool fits = last.starts_with(entry.first) &&
                      (last.size() == entry.first.size() || !IsLetter(last[entry.first.size()]));
    if (fits && (best == nullptr || entry.first.size() > best->first.size())) best = &entry;
  }
  // Experts share the rest of the model, so that a catalogued size is better than the product.
  if (best != nullptr && best->first.contains("x") && best->second > 1000)
    return best->second * 1e6;
  if (const auto size = SizeInName(last)) return size;
  if (best != nullptr && best->second > 0) return best->second * 1e6;
  return std::nullopt;
}

std::string_view ModelWeightType(std::string_view name) {
  constexpr auto kMarks =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"nvfp4", "int4"},
                                                                    {"mxfp4", "int4"},
                                                                    {"awq", "int4"},
                                                                    {"gptq", "int4"},
                                                                    {"int4", "int4"},
                                                                    {"4bit", "int4"},
                                                                    {"w4a16", "int4"},
                                                                    {"q4", "int4"},
                                                                    {"fp8", "float8"},
                                                                    {"int8", "int8"},
                                                                    {"8bit", "int8"},
                                                                    {"w8a8", "int8"},
                                                                    {"q8", "int8"}});
  std::string last = Normalise(name.substr(0, 400));
  std::ranges::replace(last, '.', '-');
  for (const std::string_view word : base::Split(last, '-')) {
    for (const auto& [mark, type] : kMarks) {
      if (word == mark) return type;
    }
  }
  return {};
}

bool LooksLikeModel(std::string_view name) {
  if (name.empty() || name.size() > 400 || name.contains(' ') || name.contains("://")) return false;
  if (ModelParameters(name)) return true;
  const std::size_t slash = name.find('/');
  return slash != std::string_view::npos && slash > 0 &&
         name.find('/', slash + 1) == std::string_view::npos && slash + 1 < name.size() &&
         name[0] != '.' && !name.substr(slash).contains(".py");
}

}  // namespace expanse::workload::source
