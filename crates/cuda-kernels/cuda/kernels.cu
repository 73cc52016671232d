// All kernels: one module.
#include "elementwise.h"
#include "moving.h"
#include "indexing.h"
#include "reduce.h"
#include "rows.h"
#include "pooling.h"
#include "random.h"
#include "product.h"
