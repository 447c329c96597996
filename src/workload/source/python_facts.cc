#include "workload/source/python_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "workload/line_index.h"
#include "workload/source/model_catalogue.h"
#include "workload/source/python_values.h"
#include "workload/syntax/tree.h"

namespace expanse::workload::source {
namespace {

using syntax::Node;
using Pair = std::pair<std::string_view, std::string_view>;

// Top-level module to framework.
constexpr auto kFrameworks =
    std::to_array<Pair>({{"torch", "torch"},
                         {"torchvision", "torch"},
                         {"torchaudio", "torch"},
                         {"pytorch_lightning", "lightning"},
                         {"lightning", "lightning"},
                         {"transformers", "transformers"},
                         {"peft", "peft"},
                         {"trl", "trl"},
                         {"unsloth", "unsloth"},
                         {"deepspeed", "deepspeed"},
                         {"accelerate", "accelerate"},
                         {"bitsandbytes", "bitsandbytes"},
                         {"vllm", "vllm"},
                         {"sglang", "sglang"},
                         {"tensorflow", "tensorflow"},
                         {"keras", "keras"},
                         {"jax", "jax"},
                         {"flax", "jax"},
                         {"optax", "jax"},
                         {"haiku", "jax"},
                         {"sklearn", "sklearn"},
                         {"xgboost", "xgboost"},
                         {"lightgbm", "lightgbm"},
                         {"catboost", "catboost"},
                         {"pandas", "pandas"},
                         {"polars", "polars"},
                         {"dask", "dask"},
                         {"pyspark", "spark"},
                         {"ray", "ray"},
                         {"numpy", "numpy"},
                         {"scipy", "scipy"},
                         {"numba", "numba"},
                         {"cupy", "cupy"},
                         {"cudf", "cudf"},
                         {"mpi4py", "mpi4py"},
                         {"horovod", "horovod"},
                         {"diffusers", "diffusers"},
                         {"sentence_transformers", "sentence_transformers"},
                         {"timm", "timm"},
                         {"datasets", "datasets"},
                         {"multiprocessing", "multiprocessing"},
                         {"joblib", "joblib"},
                         {"openmm", "openmm"},
                         {"scanpy", "scanpy"},
                         {"whisper", "whisper"},
                         {"llama_cpp", "llama.cpp"},
                         {"onnxruntime", "onnxruntime"},
                         {"megatron", "megatron"},
                         {"colossalai", "colossalai"},
                         {"torch_geometric", "torch"},
                         {"dgl", "dgl"},
                         {"xarray", "xarray"},
                         {"cv2", "opencv"},
                         {"fastai", "fastai"},
                         {"paddle", "paddle"},
                         {"mxnet", "mxnet"},
                         {"ultralytics", "ultralytics"}});

constexpr std::array<std::string_view, 5> kNeedGpu = {"vllm", "cupy", "cudf", "bitsandbytes",
                                                      "unsloth"};

constexpr auto kReaders = std::to_array<std::string_view>(
    {"read_csv", "read_parquet", "read_feather", "read_json", "read_excel", "read_hdf",
     "read_table", "read_pickle", "scan_csv", "scan_parquet", "load_dataset", "open_dataset",
     "open_zarr", "loadtxt", "genfromtxt", "read_h5ad", "ImageFolder", "memmap", "fromfile"});

constexpr auto kTrainers = std::to_array<std::string_view>(
    {"backward", "Trainer", "SFTTrainer", "DPOTrainer", "GRPOTrainer", "PPOTrainer",
     "Seq2SeqTrainer", "TrainingArguments", "SFTConfig", "train_on_batch", "GradientTape",
     "value_and_grad", "apply_gradients"});
constexpr auto kInferers =
    std::to_array<std::string_view>({"generate", "no_grad", "inference_mode", "pipeline", "predict",
                                     "predict_proba", "transcribe"});

bool Contains(const auto& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

class Reader {
 public:
  Reader(std::string_view path, const syntax::Tree& tree, const std::vector<Word>& arguments,
         FactCollector* facts)
      : path_(path), tree_(tree), lines_(tree.text()), values_(tree, arguments), facts_(facts) {}

  void Read() {
    for (const Node node : tree_) {
      if (node.is("import_statement") || node.is("import_from_statement")) {
        Import(node);
      } else if (node.is("call")) {
        Call(node);
      } else if (node.is("assignment")) {
        Assignment(node);
      } else if (node.is("default_parameter") || node.is("typed_default_parameter")) {
        Offer(node.Child("name").text(), node.Child("value"), Strength::kAssigned);
      } else if (node.is("pair")) {
        if (const auto key = PythonString(node.Child("key"))) {
          Offer(*key, node.Child("value"), Strength::kDefault);
        }
      } else if (node.is("string")) {
        const auto text = PythonString(node);
        if (text && (*text == "cuda" || text->starts_with("cuda:"))) {
          facts_->Offer(Flag::kUsesGpu, At(node));
        }
      }
    }
    for (const PythonValues::Argument& argument : values_.arguments()) Argument(argument);
    if (literal_parameters_ > 0) {
      facts_->Offer(Number::kLiteralParameters, literal_parameters_, literal_evidence_,
                    Strength::kPassed);
    }
  }

 private:
  Evidence At(const Node& node) const {
    constexpr std::size_t kLongest = 120;
    const Place place = lines_.PlaceOf(node.begin(), node.end());
    const std::string_view rest =
        tree_.text().substr(place.begin - (place.column - 1), 4 * kLongest);
    const std::string_view line = base::Trim(rest.substr(0, rest.find('\n')));
    return {.file = std::string(path_),
            .line = place.line,
            .text = base::ToValidUtf8(line.substr(0, kLongest))};
  }

  void Offer(std::string_view name, const Node& value, Strength strength) {
    if (name.size() > 60) return;
    if (!IsSetting(SettingName(name))) return;
    if (const auto literal = values_.Evaluate(value)) {
      facts_->OfferNamed(name, *literal, At(value), strength);
    } else if (strength == Strength::kPassed && value) {
      facts_->OfferUnknown(name, At(value), value.text());
    }
  }

  void Import(const Node& node) {
    for (const Node& child : node.NamedChildren()) {
      const bool module = node.is("import_statement") || child.field() == "module_name";
      if (!module) continue;
      const Node named = child.is("aliased_import") ? child.Child("name") : child;
      const std::string_view top = named.text().substr(0, named.text().find('.'));
      const auto found = std::ranges::find(kFrameworks, top, &Pair::first);
      if (found == kFrameworks.end()) continue;
      facts_->AddFramework(found->second, At(node));
      if (Contains(kNeedGpu, top)) facts_->Offer(Flag::kUsesGpu, At(node));
    }
  }

  void Assignment(const Node& node) {
    const Node left = node.Child("left");
    const Node right = node.Child("right");
    if (left.is("identifier")) Offer(left.text(), right, Strength::kAssigned);
    if (left.is("attribute")) Offer(left.Child("attribute").text(), right, Strength::kAssigned);
    if (left.is("subscript")) {  // os.environ["OMP_NUM_THREADS"] = "8", config["batch_size"] = 4
      const auto key = PythonString(left.Child("subscript"));
      if (!key) return;
      if (key->ends_with("_NUM_THREADS")) {
        const auto value = values_.Evaluate(right);
        if (!value) return;
        const Literal number =
            value->kind == Literal::Kind::kText ? LiteralOf(value->text) : *value;
        if (number.kind == Literal::Kind::kNumber) {
          facts_->Offer(Number::kThreads, number.number, At(node), Strength::kPassed);
        }
      } else {
        Offer(*key, right, Strength::kDefault);
      }
    }
  }

  void Argument(const PythonValues::Argument& argument) {
    if (!IsSetting(argument.name)) return;
    const Evidence evidence = At(argument.call);
    const auto value = values_.ValueOf(argument);
    if (!value) {
      facts_->OfferUnknown(argument.name, evidence, "an argument without a literal default");
      return;
    }
    const bool given = std::ranges::any_of(argument.spellings, [&](const std::string& spelling) {
      return values_.OnCommandLine(spelling).has_value();
    });
    facts_->OfferNamed(argument.name, *value, evidence,
                       given ? Strength::kCommand : Strength::kDefault);
  }

  void Call(const Node& call) {
    const Node function = call.Child("function");
    const std::string_view name =
        function.is("attribute") ? function.Child("attribute").text() : function.text();
    if (name.size() > 60) return;
    const auto arguments = call.Child("arguments").NamedChildren();
    const bool settings = name != "add_argument" && !name.starts_with("DEFINE_");
    for (const Node& argument : arguments) {
      if (!argument.is("keyword_argument")) continue;
      const std::string_view keyword = argument.Child("name").text();
      if (settings) Offer(keyword, argument.Child("value"), Strength::kPassed);
    }
    ModelCall(name, function, call, arguments);
    TrainingCall(name, function, call, arguments);
    ParallelCall(name, call, arguments);
    LayerCall(name, function, call, arguments);
    if (Contains(kReaders, name) && !arguments.empty()) {
      const auto path = values_.Evaluate(arguments[0]);
      if (path && path->kind == Literal::Kind::kText) facts_->AddDataFile(path->text, At(call));
    }
  }

  void AddModelFrom(const Node& argument, const Node& call) {
    const auto value = values_.Evaluate(argument);
    if (value && value->kind == Literal::Kind::kText) facts_->AddModel(value->text, At(call));
  }

  void ModelCall(std::string_view name, const Node& function, const Node& call,
                 const std::vector<Node>& arguments) {
    constexpr auto kLoaders = std::to_array<std::string_view>(
        {"from_pretrained", "LLM", "SentenceTransformer", "CrossEncoder", "create_model",
         "load_model", "Engine", "snapshot_download"});
    if (Contains(kLoaders, name) && !arguments.empty() && !arguments[0].is("keyword_argument")) {
      AddModelFrom(arguments[0], call);
    }
    if (name == "pipeline" && arguments.size() > 1) AddModelFrom(arguments[1], call);
    if (name == "load" && function.text() == "torch.hub.load" && arguments.size() > 1) {
      AddModelFrom(arguments[1], call);
    }
    // models.resnet50(), torchvision.models.vit_b_16(weights=…)
    if (function.is("attribute") && DottedName(function.Child("object")).ends_with("models") &&
        ModelParameters(name)) {
      facts_->AddModel(name, At(call));
    }
    if (name == "LLM") facts_->Offer(Choice::kServer, "vllm", At(call), Strength::kPassed);
    if (name == "half" && arguments.empty()) {
      facts_->Offer(Choice::kWeightType, "float16", At(call), Strength::kAssigned);
    }
    if (name == "bfloat16" && arguments.empty()) {
      facts_->Offer(Choice::kWeightType, "bfloat16", At(call), Strength::kAssigned);
    }
    if (name == "autocast") Autocast(call, arguments);
    if (name == "cuda" || (name == "to" && !arguments.empty() && IsCuda(arguments[0]))) {
      facts_->Offer(Flag::kUsesGpu, At(call));
    }
  }

  bool IsCuda(const Node& node) const {
    const auto value = values_.Evaluate(node);
    return value && value->text.starts_with("cuda");
  }

  void Autocast(const Node& call, const std::vector<Node>& arguments) {
    std::string type = "fp16";  // torch's default on CUDA
    for (const Node& argument : arguments) {
      const Node value = argument.is("keyword_argument") ? argument.Child("value") : argument;
      const auto literal = values_.Evaluate(value);
      if (literal && NumberType(literal->text) == "bfloat16") type = "bf16";
    }
    facts_->Offer(Choice::kMixedPrecision, type, At(call), Strength::kAssigned);
  }

  void TrainingCall(std::string_view name, const Node& function, const Node& call,
                    const std::vector<Node>& arguments) {
    if (Contains(kTrainers, name)) facts_->Offer(Flag::kTrains, At(call));
    if (Contains(kInferers, name)) facts_->Offer(Flag::kInfers, At(call));
    const bool fits_network =
        name == "fit" && (facts_uses_network_ || call.text().contains("epochs"));
    if (fits_network) facts_->Offer(Flag::kTrains, At(call));
    if (const std::string optimizer = OptimizerNamed(name); !optimizer.empty()) {
      const std::string object =
          function.is("attribute") ? DottedName(function.Child("object")) : "";
      const bool qualified = object.contains("optim") || object == "bnb.optim" || object == "optax";
      // A bare name counts where it is called with parameters; "Adam" is also a first name.
      if (qualified || (object.empty() && !arguments.empty())) {
        facts_->Offer(Choice::kOptimizer, optimizer, At(call), Strength::kPassed);
        facts_->Offer(Flag::kTrains, At(call));
        if (name.starts_with("DeepSpeedCPU")) facts_->Offer(Flag::kOffloads, At(call));
      }
    }
    if (name == "gradient_checkpointing_enable" || name == "checkpoint_sequential") {
      facts_->Offer(Flag::kCheckpointing, At(call));
    }
    if (name == "LoraConfig" || name == "get_peft_model") {
      facts_->Offer(Flag::kLora, At(call));
      for (const Node& argument : arguments) {
        if (!argument.is("keyword_argument") || argument.Child("name").text() != "r") continue;
        const auto rank = values_.Evaluate(argument.Child("value"));
        if (rank && rank->kind == Literal::Kind::kNumber) {
          facts_->Offer(Number::kLoraRank, rank->number, At(argument), Strength::kPassed);
        }
      }
    }
  }

  void ParallelCall(std::string_view name, const Node& call, const std::vector<Node>& arguments) {
    if (name == "FSDP" || name == "FullyShardedDataParallel" || name == "fully_shard") {
      facts_->Offer(Choice::kSharding, "fsdp", At(call), Strength::kPassed);
    }
    if (name == "DDP" || name == "DistributedDataParallel" || name == "DataParallel" ||
        name == "MirroredStrategy") {
      facts_->Offer(Flag::kDataParallel, At(call));
    }
    const bool pool = name == "Pool" || name == "ProcessPoolExecutor" ||
                      name == "ThreadPoolExecutor" || name == "ThreadPool";
    if (pool) {
      const bool positional = !arguments.empty() && !arguments[0].is("keyword_argument");
      const auto size = positional ? values_.Evaluate(arguments[0]) : std::nullopt;
      if (size && size->kind == Literal::Kind::kNumber) {
        facts_->Offer(Number::kProcesses, size->number, At(call), Strength::kPassed);
      } else if (arguments.empty() && name != "ThreadPoolExecutor") {
        facts_->Offer(Number::kProcesses, -1, At(call), Strength::kPassed);  // one per core
      }
    }
    if (name == "set_num_threads" && arguments.size() == 1) {
      const auto count = values_.Evaluate(arguments[0]);
      if (count && count->kind == Literal::Kind::kNumber) {
        facts_->Offer(Number::kThreads, count->number, At(call), Strength::kPassed);
      }
    }
  }

  std::optional<double> NumberAt(const std::vector<Node>& arguments, std::size_t position,
                                 std::string_view keyword) const {
    std::size_t positional = 0;
    for (const Node& argument : arguments) {
      Node value = argument;
      if (argument.is("keyword_argument")) {
        if (argument.Child("name").text() != keyword) continue;
        value = argument.Child("value");
      } else if (positional++ != position) {
        continue;
      }
      const auto literal = values_.Evaluate(value);
      if (!literal || literal->kind != Literal::Kind::kNumber || literal->number <= 0)
        return std::nullopt;
      return literal->number;
    }
    return std::nullopt;
  }

  // Layers whose sizes are literals. A layer that a loop repeats counts once: the sum is a floor.
  void LayerCall(std::string_view name, const Node& function, const Node& call,
                 const std::vector<Node>& arguments) {
    const bool torch_layer = function.text() == name ||
                             DottedName(function.Child("object")) == "nn" ||
                             DottedName(function.Child("object")) == "torch.nn";
    if (!torch_layer) return;
    double parameters = 0;
    if (name == "Linear") {
      const auto in = NumberAt(arguments, 0, "in_features");
      const auto out = NumberAt(arguments, 1, "out_features");
      if (in && out) parameters = *in * *out + *out;
    } else if (name == "Embedding") {
      const auto count = NumberAt(arguments, 0, "num_embeddings");
      const auto width = NumberAt(arguments, 1, "embedding_dim");
      if (count && width) parameters = *count * *width;
    } else if (name == "Conv1d" || name == "Conv2d" || name == "Conv3d") {
      const auto in = NumberAt(arguments, 0, "in_channels");
      const auto out = NumberAt(arguments, 1, "out_channels");
      const auto kernel = NumberAt(arguments, 2, "kernel_size");
      if (in && out && kernel) parameters = *in * *out * std::pow(*kernel, name[4] - '0') + *out;
    } else if (name == "LSTM" || name == "GRU") {
      const auto in = NumberAt(arguments, 0, "input_size");
      const auto hidden = NumberAt(arguments, 1, "hidden_size");
      const double layers = NumberAt(arguments, 2, "num_layers").value_or(1);
      const double gates = name == "LSTM" ? 4 : 3;
      if (in && hidden) {
        parameters = gates * (*hidden * (*in + *hidden) + (layers - 1) * 2 * *hidden * *hidden);
      }
    } else if (name == "TransformerEncoderLayer" || name == "TransformerDecoderLayer") {
      const auto width = NumberAt(arguments, 0, "d_model");
      const double inner = NumberAt(arguments, 2, "dim_feedforward").value_or(2048);
      if (width) parameters = 4 * *width * *width + 2 * *width * inner;
    }
    if (!(parameters > 0) || !std::isfinite(parameters)) return;
    if (literal_parameters_ == 0) literal_evidence_ = At(call);
    literal_parameters_ += parameters;
  }

  std::string_view path_;
  const syntax::Tree& tree_;
  LineIndex lines_;
  PythonValues values_;
  FactCollector* facts_;
  bool facts_uses_network_ = tree_.text().contains("tensorflow") ||
                             tree_.text().contains("keras") || tree_.text().contains("lightning") ||
                             tree_.text().contains("Trainer");
  double literal_parameters_ = 0;
  Evidence literal_evidence_;
};

}  // namespace

base::Status ReadPythonFacts(std::string_view path, std::string_view text,
                             const std::vector<Word>& arguments, std::chrono::microseconds time,
                             FactCollector* facts) {
  EXPANSE_ASSIGN_OR_RETURN(const syntax::Tree tree,
                           syntax::Tree::Parse(syntax::Language::kPython, text, {.time = time}));
  Reader(path, tree, arguments, facts).Read();
  return {};
}

base::Result<std::string> PythonOfNotebook(std::string_view json) {
  const auto notebook = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto cells = notebook.is_object() ? notebook.find("cells") : notebook.end();
  if (!notebook.is_object() || cells == notebook.end() || !cells->is_array()) {
    return base::Fail(base::Code::kInvalidArgument, "notebook.syntax", "it is no Jupyter notebook");
  }
  std::string python;
  const auto add = [&](std::string_view source) {
    for (const std::string_view line : base::Split(source, '\n')) {
      const bool magic = line.starts_with('%') || line.starts_with('!');
      if (!magic) python += line;
      python += '\n';
    }
  };
  for (const auto& cell : *cells) {
    if (!cell.is_object()) continue;
    const auto type = cell.find("cell_type");
    const auto source = cell.find("source");
    if (type == cell.end() || source == cell.end() || *type != "code") continue;
    if (source->is_string()) add(source->get_ref<const std::string&>());
    std::string joined;
    if (source->is_array()) {
      for (const auto& line : *source) {
        if (line.is_string()) joined += line.get_ref<const std::string&>();
      }
      add(joined);
    }
  }
  return python;
}

}  // namespace expanse::workload::source
