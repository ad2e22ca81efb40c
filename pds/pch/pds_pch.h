/// What every file of this folder includes, compiled once for all of them. Files still name what they use: configure with
/// -Db_pch=false to see that they do.
#include <algorithm>

#include "pds/engine.h"
