/* mxrt for C++17: models that answer from any number of threads. One header over the C interface.
 *
 *   auto net = mxrt::SymbolBlock::imports("m-symbol.json", {"data"}, "m-0000.params");
 *   auto y = net(mxrt::Array(pixels, {1, 3, 224, 224}));
 *   for (float score : y.view<float>()) use(score);
 *
 * Calls return at once; the results are computed in the background and waited for when they are
 * read. Every function may be called from any thread, also on one block or array at the same time.
 * Errors are exceptions, all of them an mxrt::Error. Copies of blocks and arrays are handles of the
 * same object.
 */
#ifndef MXRT_HPP_
#define MXRT_HPP_

#include <mxrt.h>
#include <mxrt/array.hpp>
#include <mxrt/error.hpp>
#include <mxrt/symbol_block.hpp>

#endif /* MXRT_HPP_ */
