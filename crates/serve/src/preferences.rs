//! Preferences of a client: headers that list names with weights, such as `Accept`.

use hyper::header::{AsHeaderName, HeaderMap};

/// Returns the names of all headers of a kind with their weights, the most wanted first and those of
/// equal weight in their order. A name that is not wanted, of weight 0, or whose weight is no number,
/// is left out.
pub(crate) fn preferences(headers: &HeaderMap, header: impl AsHeaderName) -> Vec<(&str, f32)> {
    let lists = headers.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
    let mut entries: Vec<_> = lists.flat_map(|list| list.split(',')).map(weighted).collect();
    entries.retain(|(_, weight)| *weight > 0.0);
    entries.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    entries
}

/// Divides `name;parameter;q=0.5`.
fn weighted(entry: &str) -> (&str, f32) {
    let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
    let mut weights = parameters.split(';').filter_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case("q").then_some(value.trim())
    });
    (name.trim(), weights.next().map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{ACCEPT, HeaderValue};

    #[test]
    fn names_are_sorted_by_weight_and_those_that_are_not_wanted_left_out() {
        let of = |lists: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for list in lists {
                headers.append(ACCEPT, HeaderValue::from_static(list));
            }
            preferences(&headers, ACCEPT).into_iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(&["a;q=0.2, b", "c;level=1;Q=0.5,d"]), ["b", "d", "c", "a"]);
        assert_eq!(of(&["a;q=0,b;q=wrong,c;q=NaN, d ; q=1"]), ["d"]);
        assert!(of(&[]).is_empty());
    }
}
