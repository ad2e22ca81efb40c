/// What most files of this folder include, compiled once for all of them. Files still name what they use: configure with
/// -Db_pch=false to see that they do.
#include <algorithm>

#include "ses/receiver.h"
#include "ses/transmitter.h"
