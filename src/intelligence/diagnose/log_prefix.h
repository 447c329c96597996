// What loggers write before a message, beside time stamps: level, place in the source, actor.
#pragma once

#include <string_view>

namespace expanse::intelligence::diagnose {

// Removes one such prefix from the beginning; false where there is none:
//   "(EngineCore_DP0 pid=46) ", "(RayTrainWorker pid=4, ip=10.0.0.1) "   actors of Ray and vLLM
//   "ERROR 10-21 02:11:42 [core.py:708] "                                vLLM
//   "E0301 02:11:10.001000 140001 torch/api.py:897] "                    glog, absl, torch
//   "ERROR:root:", "WARNING:tensorflow:"                                 Python's logging
//   "[core.py:708] "                                                     what is left of others
// A level alone stays: it says something. Constant time.
bool TakeLoggerPrefix(std::string_view* text);

}  // namespace expanse::intelligence::diagnose
