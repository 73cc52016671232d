//! Elements found by number: taking, picking, scattering, sorting.

pub mod argsort;
pub mod batch_take;
pub mod boolean_mask;
pub mod fill_element_0index;
pub mod gather_nd;
pub mod index_array;
pub mod index_copy;
pub mod one_hot;
pub mod onehot_encode;
pub mod pick;
pub mod ravel_multi_index;
pub mod scatter_nd;
pub mod scatter_set_nd;
pub mod sort;
pub mod take;
pub mod topk;
pub mod unravel_index;
pub mod where_op;
