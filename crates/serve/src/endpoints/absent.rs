//! Paths of other servers, with what does their work here.

/// Patterns of paths, and words for the client. `*` stands for any segment, and further segments
/// may follow. Paths are compared without the version of a model. The first row that matches counts,
/// and the last one is for all others.
static ABSENT: &[(&[&str], &str)] = &[
    (&["ping"], "GET /v2/health/ready does this; /ping is there with --sagemaker"),
    (&["invocations"], "POST /predictions/MODEL does this; /invocations is there with --sagemaker and one model"),
    (
        &["models"],
        "the calls below /v2/repository load, unload and list models; those of SageMaker are there with --sagemaker \
         and SAGEMAKER_MULTI_MODEL=true",
    ),
    (&["predictions"], "POST /predictions/MODEL names a model; POST /v2/repository/index lists the models"),
    (&["v2", "systemsharedmemory"], SHARED_MEMORY),
    (&["v2", "cudasharedmemory"], SHARED_MEMORY),
    (&["v2", "models", "*", "trace"], TRACE),
    (&["v2", "trace"], TRACE),
    (&["v2", "logging"], "the options --logs and --log-requests of mxrt serve say what is written to the log"),
    (&["v2", "models", "*", "generate"], GENERATE),
    (&["v2", "models", "*", "generate_stream"], GENERATE),
    (&["v2", "profile"], ADMIN),
    (&["v2", "models", "*", "plan"], ADMIN),
    (&["v2", "models"], "POST /v2/repository/index lists the models"),
    (&[], "GET /v2 says what this server is"),
];

const SHARED_MEMORY: &str = "shared memory is not supported: send binary data after the JSON";
const TRACE: &str = "the option --traces of mxrt serve sends spans to a collector, and POST /v2/profile on the \
                     admin port records the layers";
const GENERATE: &str = "POST /v2/models/MODEL/infer takes tensors; text is for a hook";
const ADMIN: &str = "this path is there on the admin port, which the option --admin-port opens";

/// Returns the message for a path, given as its segments, that the server does not have.
pub(super) fn words(path: &[String]) -> String {
    let is = |pattern: &&(&[&str], &str)| {
        let mut segments = without_version(path);
        pattern.0.iter().all(|wanted| segments.next().is_some_and(|segment| *wanted == "*" || wanted == segment))
    };
    let words = ABSENT.iter().find(is).map_or("", |(_, words)| *words);
    format!("there is no such path; {words}")
}

/// Returns the segments of a path, without `versions/V` after the name of a model.
fn without_version(path: &[String]) -> impl Iterator<Item = &String> {
    let (model, rest) = path.split_at(path.len().min(3));
    let skipped = if rest.first().is_some_and(|segment| segment == "versions") { 2 } else { 0 };
    model.iter().chain(rest.iter().skip(skipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_another_server_is_told_what_does_its_work() {
        let of = |path: &str| words(&path.split('/').skip(1).map(str::to_owned).collect::<Vec<_>>());
        assert!(of("/v2/models/a/generate_stream").contains("a hook"));
        assert!(of("/v2/systemsharedmemory/region/a/register").contains("binary data"));
        assert!(of("/v2/models/a/versions/1/generate").contains("a hook"));
        assert!(of("/v2/models").contains("/v2/repository/index"));
        for path in ["/v2/models/a/plan", "/v2/models/a/versions/1/plan", "/v2/profile"] {
            assert!(of(path).contains("--admin-port"), "{path}");
        }
        assert!(of("/v2/models/a/trace/setting").contains("--traces"));
        assert_eq!(of("/v3"), "there is no such path; GET /v2 says what this server is");
    }
}
