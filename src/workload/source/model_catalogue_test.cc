#include "workload/source/model_catalogue.h"

#include <gtest/gtest.h>

namespace expanse::workload::source {
namespace {

TEST(ModelParameters, SizesInNames) {
  EXPECT_EQ(ModelParameters("org/Name-7B"), 7e9);
  EXPECT_EQ(ModelParameters("meta-llama/Llama-3.1-70B-Instruct"), 70e9);
  EXPECT_EQ(ModelParameters("/data/models/Llama-3-70b/"), 70e9);
  EXPECT_EQ(ModelParameters("Qwen/Qwen2.5-0.5B"), 0.5e9);
  EXPECT_EQ(ModelParameters("facebook/opt-350m"), 350e6);
  EXPECT_EQ(ModelParameters("facebook/esm2_t33_650M_UR50D"), 650e6);
  EXPECT_EQ(ModelParameters("Qwen/Qwen3-30B-A3B"), 30e9);
  EXPECT_EQ(ModelParameters("EleutherAI/gpt-j-6b"), 6e9);
  EXPECT_EQ(ModelParameters("deepseek-ai/DeepSeek-R1-Distill-Qwen-14B"), 14e9);
  EXPECT_EQ(ModelParameters("Llama2-13B-chat.Q4_K_M.gguf"), 13e9);
  EXPECT_EQ(ModelParameters("some/moe-4x2b"), 8e9);
}

TEST(ModelParameters, KnownNames) {
  EXPECT_EQ(ModelParameters("gpt2"), 124e6);
  EXPECT_EQ(ModelParameters("openai-community/gpt2-xl"), 1558e6);
  EXPECT_EQ(ModelParameters("bert-base-uncased"), 110e6);
  EXPECT_EQ(ModelParameters("google/vit_large_patch16_224"), 304e6);
  EXPECT_EQ(ModelParameters("mistralai/Mixtral-8x7B-v0.1"), 46.7e9);
  EXPECT_EQ(ModelParameters("stabilityai/stable-diffusion-xl-base-1.0"), 3.5e9);
  EXPECT_EQ(ModelParameters("deepseek-ai/DeepSeek-V3"), 671e9);
  EXPECT_EQ(ModelParameters("resnet50"), 25.6e6);
}

TEST(ModelParameters, NotKnown) {
  for (const std::string_view name :
       {"", "my-model", "llama", "checkpoint-500", "v2.0", "b", "1b2c3", "resnetx", "run-20240101",
        "epoch10", "99999999b", "0b", "./7", "x5bit"}) {
    EXPECT_FALSE(ModelParameters(name)) << name;
  }
}

TEST(ModelWeightType, WhereTheNameTells) {
  EXPECT_EQ(ModelWeightType("org/Name-7B-Instruct-AWQ"), "int4");
  EXPECT_EQ(ModelWeightType("org/Name-120B-NVFP4"), "int4");
  EXPECT_EQ(ModelWeightType("org/Name-8B-FP8"), "float8");
  EXPECT_EQ(ModelWeightType("name-7b.Q4_K_M.gguf"), "int4");
  EXPECT_EQ(ModelWeightType("org/Name-7B"), "");
}

TEST(LooksLikeModel, NamesNotPathsOfPrograms) {
  EXPECT_TRUE(LooksLikeModel("org/anything"));
  EXPECT_TRUE(LooksLikeModel("/models/x-7b"));
  EXPECT_FALSE(LooksLikeModel("src/train.py"));
  EXPECT_FALSE(LooksLikeModel("./out/x"));
  EXPECT_FALSE(LooksLikeModel("cuda"));
  EXPECT_FALSE(LooksLikeModel("https://x/y"));
}

}  // namespace
}  // namespace expanse::workload::source
