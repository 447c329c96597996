// The spool's name for base::AbandonableThread.
#pragma once

#include "base/abandonable_thread.h"

namespace expanse::daemon::spool {

using base::AbandonableThread;

}  // namespace expanse::daemon::spool
