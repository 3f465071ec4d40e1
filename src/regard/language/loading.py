"""`load`: a LanguageModel by name or folder; `pull`: a model from the hub; `convert`: to Hugging Face's layout.

Every file is validated before use, and the files are checked against each other. `load` never downloads. The names of
variables and folders of the cache are those of the package `huggingface_hub`; reading the cache does not import it.
"""

import json
import os
import re
from collections.abc import Mapping
from errno import ENOSPC
from importlib.util import find_spec
from math import prod
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from regard.checkpoints import Stored, read_model, write_hub_model
from regard.checkpoints.families import FAMILIES
from regard.checkpoints.gguf_file import is_gguf
from regard.checkpoints.gguf_model import read_gguf
from regard.checkpoints.hub_folder import hub_settings, of_family, read_hub_model
from regard.checkpoints.model_folder import (
    file_in_folder,
    gguf_of,
    is_hub_folder,
    is_known_family,
    model_folder_of,
)
from regard.checkpoints.tensor_file import CONFIG
from regard.config import TransformerConfig
from regard.errors import ArgumentError, FileError, require_package
from regard.files.output import reason_of, write_bytes
from regard.files.safe_open import read_file
from regard.language.embedding import module_files
from regard.language.hub_files import (
    LARGEST_TOKENIZER_CONFIG,
    SETTINGS,
    TOKENIZER_CONFIG,
    GgufFiles,
    HubFiles,
    Task,
    read_settings,
    report_adapter,
    report_unused,
    special_ids_of,
)
from regard.language.hub_files import read_tokenizer as read_tokenizer_of
from regard.language.input_text import WORDS_FILE, read_words
from regard.language.model import LanguageModel, ModelBackend
from regard.messages import Listed, say
from regard.reference import Transformer
from regard.text.tokenizer import LARGEST_FILE, Tokenizer

if TYPE_CHECKING:
    from regard.language.hub_files import HubFiles


TASKS: dict[str, Task] = {"encoder": "encoding", "decoder": "text", "encoder-decoder": "translation"}
"""The task of a public model by its kind; one without an output layer only encodes."""
BY_TRANSFORMERS = ("config-key-refused", "config-key-value", "config-keys-differ", "model-weights")
"""What our tables refuse and the package `transformers` may compute."""
BUNDLED = ("translator", "poet")
"""English to Chinese; Tang poems. The README.md of each describes it."""

ASSETS = Path(__file__).parents[1] / "assets"


def find_model(source: str | os.PathLike[str]) -> Path:
    """The folder of a model: of a bundled one by its name, a model folder itself, or the model folder of a run."""
    if not isinstance(source, str | os.PathLike):
        raise ArgumentError("model-name-wanted", found=type(source).__name__, names=Listed(BUNDLED))
    folder = bundled(str(source)) if source in BUNDLED else Path(source)
    if not (os.fspath(source) and folder.exists()):
        name = os.fspath(source)
        if (found := cached(name)) is not None:
            return found
        if "/" in name and HUB_ID.fullmatch(name):
            raise FileError("language-not-pulled", name=name)
        raise FileError("language-no-folder", found=str(source), names=Listed(BUNDLED))
    if is_gguf(folder):
        return folder
    return newest_snapshot(folder) or model_folder_of(folder)


def bundled(name: str) -> Path:
    """The folder of a bundled model. Raises FileError where it is not installed."""
    folder = ASSETS / name
    if not folder.is_dir():
        raise FileError("bundled-absent", name=name, path=str(folder))
    return folder


TOKENIZER = "tokenizer.json"
BackendName = Literal["numpy", "torch", "transformers"]
WeightsName = Literal["float32", "int8"]
LARGE = 20_000_000
"""Weights from which a public model is computed by torch, if it is installed: NumPy takes several times as long."""


class Asked(NamedTuple):
    """What the caller of `load` wishes."""

    backend: BackendName | None = None
    int8: bool = False


def load(
    source: str | os.PathLike[str], *, backend: BackendName | None = None, weights: WeightsName | None = None
) -> LanguageModel:
    """A model that reads text: the bundled "translator" or "poet", or the folder of another model or of a run.

    source    a folder in Hugging Face's layout (config.json, safetensors, tokenizer files), a GGUF file, a folder that
              this package wrote (also words.txt, the words of the training text), or the id of a model that
              `regard pull` downloaded; no file outside the folder is opened, and nothing is downloaded. Write "./poet"
              for a folder with the name of a bundled model
    backend   "numpy" and "torch" compute our own Transformer and give the same text; "transformers" computes a model of
              any family by that package. By default the fastest that is installed and fits; `LanguageModel.backend`
              tells which and why
    weights   "int8": large matrices as 8-bit integers with a scale for each row, by torch: a quarter of the memory, and
              faster generation on a CPU. By default, and as "float32", no weight is rounded

    With torch, weights that are stored as float32 are read from the file when they are first used: do not change the
    file in place while the model is used. Raises FileError with the file and the reason.
    """
    if backend is not None and backend not in get_args(BackendName):
        raise ArgumentError("unknown-choice", name="backend", value=backend, choices=Listed(get_args(BackendName)))
    if weights is not None and weights not in get_args(WeightsName):
        raise ArgumentError("unknown-choice", name="weights", value=weights, choices=Listed(get_args(WeightsName)))
    if weights == "int8" and backend not in (None, "torch"):
        raise ArgumentError("int8-backend", found=backend)
    asked = Asked(backend, weights == "int8")
    folder = find_model(source)
    name = Path(source).resolve().name
    if (file := gguf_of(folder)) is not None:
        return _load_gguf(file, asked)
    if is_hub_folder(folder):
        return _load_public(name, folder, asked)
    if backend == "transformers":
        raise ArgumentError("backend-own-format", path=str(folder))
    return _load_own(name, folder, asked)


def _load_own(name: str, folder: Path, asked: Asked) -> LanguageModel:
    """A model of this package's own format."""
    stored = read_model(folder)
    config = stored.config
    if config.kind == "encoder" or config.output is None or config.vocab_size is None:
        raise FileError("language-kind", path=str(folder), kind=config.kind)
    tokenizer = Tokenizer.read(file_in_folder(folder, TOKENIZER))
    for size in (config.vocab_size, config.embeddings.source_vocab_size or config.vocab_size):
        if size != tokenizer.vocab_size:
            raise FileError("language-vocabulary", path=str(folder), found=tokenizer.vocab_size, wanted=size)
    if config.kind == "encoder-decoder" and None in (tokenizer.bos, tokenizer.eos):
        raise FileError("language-marks", path=str(folder / TOKENIZER))
    has_settings = os.path.lexists(folder / SETTINGS)  # a broken link is not the same as no settings
    settings = read_settings(file_in_folder(folder, SETTINGS) if has_settings else None, config)
    has_words = os.path.lexists(folder / WORDS_FILE)
    words = read_words(file_in_folder(folder, WORDS_FILE)) if has_words else frozenset()
    chosen = ModelBackend("numpy", say("backend-small")) if asked == (None, False) else _chosen_backend(stored, asked)
    model = _model(stored, chosen, asked.int8)
    return LanguageModel(name, folder, model, tokenizer, settings, special_ids_of(tokenizer), chosen, words)


def _load_public(name: str, folder: Path, asked: Asked) -> LanguageModel:
    """A model in Hugging Face's layout: of one of our families, else by the package `transformers`."""
    from regard.language.hub_files import HubFiles

    files = HubFiles(folder)
    if asked.backend == "transformers" or not is_known_family(files.config):
        from regard.language.transformers_loading import load_by_transformers

        if asked.int8:
            raise ArgumentError("int8-backend", found="transformers")
        return load_by_transformers(name, files, asked=asked.backend is not None)
    try:
        stored = Stored(*read_hub_model(folder, files.config))
    except FileError as refusal:
        if asked.backend is not None or asked.int8 or refusal.key not in BY_TRANSFORMERS:
            raise
        return _refused(name, files, refusal)
    return _with_tokenizer(name, folder, stored, files, asked)


def _refused(name: str, files: "HubFiles", refusal: FileError) -> LanguageModel:
    """A model that is not exactly of our family, by `transformers`; our refusal where that cannot load it either."""
    from regard.language.transformers_loading import load_by_transformers

    if find_spec("transformers") is None or find_spec("torch") is None:
        raise FileError("family-install", reason=refusal) from refusal
    try:
        return load_by_transformers(name, files, refusal=refusal)
    except FileError:
        raise refusal from None


def _load_gguf(path: Path, asked: Asked) -> LanguageModel:
    """A model of one of our families in a GGUF file."""
    from regard.language.hub_files import GgufFiles

    if asked.backend == "transformers":
        raise ArgumentError("backend-own-format", path=str(path))
    file, about, tensors = read_gguf(path)
    stored = Stored(*of_family(path, about, lambda: tensors))
    return _with_tokenizer(path.stem, path, stored, GgufFiles(path, about, file.metadata), asked)


def _with_tokenizer(name: str, source: Path, stored: Stored, files: "HubFiles", asked: Asked) -> LanguageModel:
    """A model of one of our families with its tokenizer and settings."""
    from regard.language.hub_files import mask_of, read_tokenizer, special_ids

    config = stored.config
    assert config.vocab_size is not None  # public models read ids
    tokenizer = read_tokenizer(files, config.vocab_size)
    if config.kind == "encoder" and config.output is not None and isinstance(tokenizer, Tokenizer):
        tokenizer.mask = mask_of(files, tokenizer)
    special = special_ids(files, tokenizer, config)
    if config.kind == "encoder-decoder" and (special.start is None or not special.ends):
        raise FileError("language-marks", path=str(files.config_path))
    settings = files.settings("encoding" if config.output is None else TASKS[config.kind])
    report_unused(files, settings.task, stored.unused, stored.other_tasks)
    chosen = _chosen_backend(stored, asked)
    model = _model(stored, chosen, asked.int8)
    template = files.template()
    return LanguageModel(name, source, model, tokenizer, settings, special, chosen, template=template)


def _chosen_backend(stored: Stored, asked: Asked) -> ModelBackend:
    if asked.int8:
        require_package("torch", 'weights="int8"')
        from regard.functional.int8_weight import compiled_rows

        return ModelBackend("torch", say("backend-int8-slow" if compiled_rows() is None else "backend-int8"))
    if asked.backend is not None:
        return ModelBackend(asked.backend, say("backend-asked"))
    count = sum(prod(shape) for shape in stored.tensors.shapes.values())
    if count < LARGE:
        return ModelBackend("numpy", say("backend-small"))
    if find_spec("torch") is None:
        return ModelBackend("numpy", say("backend-no-torch"))
    return ModelBackend("torch", say("backend-large", count=count))


def _model(stored: Stored, backend: ModelBackend, int8: bool) -> Any:
    """The Transformer with its weights in float32, or large ones as 8-bit integers."""
    if backend.name == "torch":
        from regard.models import Transformer as TorchTransformer

        # On Windows a file that is in use cannot be replaced: a model could not be saved over itself.
        model = TorchTransformer.of_stored(stored, "float32", mapped=os.name != "nt", int8=int8)
        return model.requires_grad_(False)
    return Transformer(stored.config, stored.tensors.arrays("float32"))


# --- Hugging Face's cache --------------------------------------------------------------------------------

HUB_ID = re.compile(r"(?!.*\.\.)[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)
REVISION = re.compile(r"(?!.*\.\.)[A-Za-z0-9][\w./-]{0,200}", re.ASCII)
PULLED_FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "*.spm", "*.jinja")
"""Weights, settings and tokenizers; no pickles and no code."""
LEFT_OUT = ("onnx/*", "openvino/*", "original/*", "consolidated*", "*.msgpack", "runs/*", "*/checkpoint-*")
"""The same weights in other formats."""


def cache_folder() -> Path:
    """The folder of the cache, as `huggingface_hub` chooses it."""
    if given := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(given).expanduser()
    home = os.environ.get("HF_HOME")
    if home is None:
        home = os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(home).expanduser() / "hub"


def cached(name: str) -> Path | None:
    """The folder of a model in the cache, the revision that was pulled last as "main"; None if it is not there."""
    return newest_snapshot(cache_folder() / f"models--{name.replace('/', '--')}") if HUB_ID.fullmatch(name) else None


def newest_snapshot(model: Path) -> Path | None:
    """The revision in a model's folder of the cache that was pulled last as "main"; None in any other folder."""
    if not model.name.startswith("models--") or os.path.lexists(model / CONFIG):
        return None
    try:
        commit = read_file(model / "refs" / "main", most=1024).decode("ascii").strip()
    except (FileError, ValueError):
        commits = sorted(model.glob("snapshots/*"), key=lambda one: one.stat().st_mtime)
        return commits[-1] if commits else None
    folder = model / "snapshots" / commit
    return folder if re.fullmatch(r"[\w-]{1,80}", commit) and folder.is_dir() else None


def pull(name: str, revision: str = "main", *, file: str | None = None, quiet: bool = False) -> Path:
    """Download a model from the hub into the cache, or what is missing of it, and return its folder.

    file   only this one, such as one of several GGUF files; its path is returned

    Raises ArgumentError for an invalid name, FileError where it cannot be downloaded.
    """
    if not HUB_ID.fullmatch(name):
        raise ArgumentError("pull-name", found=name[:100])
    if not REVISION.fullmatch(revision):
        raise ArgumentError("pull-revision", found=revision[:100])
    if file is not None and (not REVISION.fullmatch(file) or not file.endswith((".gguf", ".safetensors"))):
        raise ArgumentError("pull-file", found=file[:100])
    asked = file is not None
    require_package("huggingface_hub", "regard pull")
    import huggingface_hub
    from huggingface_hub import errors
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if quiet:
        disable_progress_bars()
    try:
        found = _download(name, revision, PULLED_FILES if file is None else (file,), file is None)
        if file is None and not any(found.rglob("*.safetensors")):
            file = _only_gguf(name, revision)
            found = found if file is None else _download(name, revision, (file,), False)
    except FileError:
        raise
    except errors.GatedRepoError as error:
        raise FileError("pull-gated", name=name) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise FileError("pull-absent", name=name, revision=revision, endpoint=_endpoint()) from error
    except (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError) as error:
        key = "pull-offline" if huggingface_hub.constants.HF_HUB_OFFLINE else "pull-unreachable"
        raise FileError(key, name=name, endpoint=_endpoint(), reason=reason_of(error)) from error
    except OSError as error:
        if error.errno == ENOSPC:
            free = disk_usage(_existing(cache_folder())).free
            raise FileError("pull-full", name=name, path=str(cache_folder()), free=free / 2**30) from error
        raise FileError("pull-unreachable", name=name, endpoint=_endpoint(), reason=reason_of(error)) from error
    except Exception as error:  # of the package, and of those that it downloads with
        raise FileError("pull-unreachable", name=name, endpoint=_endpoint(), reason=reason_of(error)) from error
    if file is None:
        return found
    if not (found / file).exists():
        raise FileError("pull-no-file", name=name, revision=revision, file=file)
    return found / file if asked else found


def _download(name: str, revision: str, files: tuple[str, ...], is_model: bool) -> Path:
    import huggingface_hub

    ignored = list(LEFT_OUT) if is_model else None
    found = huggingface_hub.snapshot_download(
        name, revision=revision, allow_patterns=list(files), ignore_patterns=ignored
    )
    return Path(found)


def _only_gguf(name: str, revision: str) -> str | None:
    """The GGUF file of a repository without safetensors; FileError where there are several."""
    import huggingface_hub

    files = [one for one in huggingface_hub.HfApi().list_repo_files(name, revision=revision) if one.endswith(".gguf")]
    if len(files) > 1:
        raise FileError("pull-which", name=name, count=len(files), names=Listed.few(files))
    return files[0] if files else None


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(one for one in (folder, *folder.absolute().parents) if one.exists())


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT") or "https://huggingface.co"


COPIED = (
    TOKENIZER,
    TOKENIZER_CONFIG,
    SETTINGS,
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "tokenizer.model",
    "spiece.model",
    "source.spm",
    "target.spm",
)
"""The files beside the weights that a folder of the hub may have, without those of sentence-transformers."""


class Converted(NamedTuple):
    """What was written."""

    family: str
    folder: Path
    files: tuple[str, ...]


def convert(source: str | os.PathLike[str], folder: str | os.PathLike[str], family: str | None = None) -> Converted:
    """Write a model in Hugging Face's layout: config.json, model.safetensors and its tokenizer.

    source   a GGUF file, a folder of the hub, a folder that this package wrote, or a bundled model's name
    family   the `model_type` to write a model of our own format as; by default the first that describes it

    Numbers are written as they are stored; quantised ones as float32. Raises FileError and ArgumentError.
    """
    found, target = find_model(source), Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ArgumentError("convert-not-empty", path=str(target))
    if (file := gguf_of(found)) is not None:
        name = _from_gguf(file, target)
    elif is_hub_folder(found):
        name = _from_hub(found, target)
    else:
        name = _from_own(found, target, family)
    return Converted(name, target, tuple(sorted(path.name for path in target.iterdir())))


def _write(target: Path, family: str, stored: Stored, more: Mapping[str, Any]) -> None:
    tensors = stored.tensors
    dtypes = {name: dtype for name, dtype in tensors.dtypes.items() if dtype == "bfloat16"}
    write_hub_model(target, family, stored.config, tensors, dtypes=dtypes, more=more)


def _from_gguf(path: Path, target: Path) -> str:
    file, about, tensors = read_gguf(path)
    stored = Stored(*of_family(path, about, lambda: tensors))
    files = GgufFiles(path, about, file.metadata)
    assert stored.config.vocab_size is not None
    tokenizer = read_tokenizer_of(files, stored.config.vocab_size)
    ends = files.special_id("eos_token_id", stored.config.vocab_size)
    more = {name: value for name, value in about.items() if name.endswith("_token_id")}
    _write(target, about["model_type"], stored, more)
    if isinstance(tokenizer, Tokenizer):
        tokenizer.save(target / TOKENIZER)
        template = dict(files.tokenizer_config) | {"tokenizer_class": "PreTrainedTokenizerFast"}
        _write_json(target / TOKENIZER_CONFIG, {name: one for name, one in template.items() if one is not None})
    if ends:
        _write_json(target / SETTINGS, more | {"eos_token_id": list(ends) if len(ends) > 1 else ends[0]})
    return str(about["model_type"])


def _from_hub(source: Path, target: Path) -> str:
    """The weights under the usual names in one file; every other file as it is."""
    files, stored = HubFiles(source), read_model(source)
    family = str(files.config["model_type"])
    _write(target, family, stored, files.config)
    # The keys as their author wrote them: they describe the same model.
    write_bytes(target / CONFIG, read_file(source / CONFIG, most=LARGEST_TOKENIZER_CONFIG, within=source))
    _copy(source, target, (*COPIED, *module_files(source)))
    report_adapter(source)
    return family


def _from_own(source: Path, target: Path, family: str | None) -> str:
    stored = read_model(source)
    tokenizer = Tokenizer.read(file_in_folder(source, TOKENIZER)) if (source / TOKENIZER).exists() else None
    chosen = family_of(stored.config, source) if family is None else family
    marks = {} if tokenizer is None else {"bos": tokenizer.bos, "eos": tokenizer.eos, "pad": tokenizer.pad}
    more: dict[str, Any] = {f"{name}_token_id": number for name, number in marks.items() if number is not None}
    if stored.config.kind == "encoder-decoder" and "bos_token_id" in more:
        more["decoder_start_token_id"] = more["bos_token_id"]
    _write(target, chosen, stored, more)
    if tokenizer is not None:
        _copy(source, target, (TOKENIZER,))
        names = dict(zip(marks, tokenizer.raw_tokens(one or 0 for one in marks.values()), strict=True))
        about = {f"{name}_token": names[name] for name, number in marks.items() if number is not None}
        _write_json(target / TOKENIZER_CONFIG, about | {"tokenizer_class": "PreTrainedTokenizerFast"})
    return chosen


def family_of(config: TransformerConfig, path: Path) -> str:
    """The first family that describes a model exactly. FileError where none does."""
    reasons = []
    for name, family in FAMILIES.items():
        if family.settings is None:
            continue
        try:
            hub_settings(name, config)
        except (ArgumentError, AttributeError, TypeError, ValueError, KeyError) as error:
            reasons.append(str(error) if isinstance(error, ArgumentError) else name)
            continue
        return name
    raise FileError("convert-no-family", path=str(path), names=Listed(FAMILIES), reason=min(reasons, key=len))


def _copy(source: Path, target: Path, names: tuple[str, ...]) -> None:
    for name in names:
        if os.path.lexists(source / name):
            content = read_file(source / name, most=LARGEST_FILE, within=source)
            (target / name).parent.mkdir(exist_ok=True)
            write_bytes(target / name, content)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())
