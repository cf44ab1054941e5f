"""Provider ``container``: the programs and the MPI library of an image, run by a container engine.

An image is a folder, an OCI archive or a SIF file. ``IMAGE.yaml`` beside it describes the stack as a site's stacks.yaml
does, with paths as they are in the image. Nothing is built; an OCI archive
(https://github.com/opencontainers/image-spec) is unpacked to ``stacks/NAME/image``, which every engine runs.
"""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from plumbline import mpi
from plumbline.base import files, paths, schemas
from plumbline.base.errors import PlumbError
from plumbline.stacks import Work, engines, fetch, libraries, manifest
from plumbline.stacks.engines import INSIDE, Container
from plumbline.stacks.manifest import Loads, Manifest
from plumbline.stacks.module import Description, Descriptions

#: the options of ``plumb stack install`` that it takes
OPTIONS = ("called", "engine", "mode", "launcher")
#: below the loader, the host's MPI library by its other names
ABI = "abi"
#: prints the libraries of its arguments, which are data here, never code
_LIBRARIES = 'for file; do ldd "$file" 2>&1; done; true'
_LINE = re.compile(r"(\S+) => (/\S+)")
_LACKS = re.compile(r"^.*\bnot found\b.*$", re.MULTILINE)
#: ldd also lists the libraries that the host preloads everywhere (/etc/ld.so.preload), by their paths
_LOADER = re.compile(r"^\s*(/\S*/ld[^/\s]*) \(0x", re.MULTILINE)


#: names that mark a file, or all files of a folder, as removed by a later layer
REMOVED, EMPTIED = ".wh.", ".wh..wh..opq"
#: bytes of a document of an archive, at most
MOST_DOCUMENT = 16 << 20
#: Bytes that an image may have: some, and so many times those of its archive. Images compress to a half or a third
FREE, TIMES = 1 << 30, 20
#: bytes that an entry takes at least
ENTRY = 4096


class ImageRequest(Struct, frozen=True):
    """The image, and the options of ``plumb stack install``."""

    image: Path
    called: str
    engine: str
    mode: Literal["host", "own"]
    launcher: str | None


def names() -> tuple[str, ...]:
    """None: images are named by their paths."""
    return ()


def stack(name: str, called: str | None = None, **_: str | None) -> str:
    """The stack that image ``name`` becomes: as it is ``called``, else as its description calls it."""
    return called or (name if manifest.path(name).exists() else _described(Path(name))[0])


def work(
    name: str,
    force: bool,
    called: str | None = None,
    engine: str | None = None,
    mode: Literal["host", "own"] = "own",
    launcher: str | None = None,
) -> Work | None:
    """How the stack of the image ``name``, a path, is made; None if it is up to date."""
    image = Path(name).absolute()
    own_name, description = _described(image)
    default = next((name for name in engines.ENGINES if not engines.lacking(name)), next(iter(engines.ENGINES)))
    default = "apptainer" if image.is_file() and engines.is_sif(image) else default
    request = ImageRequest(image, called or own_name, engine or default, mode, launcher)
    _refuse(request, description)
    reason = _stale(request) or ("asked for" if force else None)

    def make(_: None) -> None:
        """Make the stack beside the present one, try it, then put it in its place."""
        home = paths.stacks() / request.called
        with files.staged(home) as fresh:
            manifest.save(manifest.moved(_fill(request, description, fresh), fresh, home), fresh)

    return Work(reason, make) if reason else None


def _described(image: Path) -> tuple[str, Description]:
    file = image.with_name(f"{image.name}.yaml")
    if not image.exists():
        raise PlumbError("there is no such image", str(image), "name a folder, an OCI archive or a SIF file")
    described = schemas.load(
        "module-stacks", file, Descriptions, "the description of an image", "write it as docs/containers.md says"
    ).stacks
    if len(described) > 1:
        raise PlumbError(f"{len(described)} stacks are described", str(file), "describe one, of this image")
    ((name, description),) = described.items()
    if description.modules:
        raise PlumbError("an image has no modules", str(file), "remove modules")
    return name, description


def _refuse(request: ImageRequest, description: Description) -> None:
    """Raise :class:`PlumbError` for an unfit name or launcher, and for an image that no engine, or not this, can run.

    Its name is that of a stack, and not of a folder that this provider did not make.
    """
    where, called, engine = str(request.image), request.called, engines.ENGINES[request.engine]
    home, absent = paths.stacks() / called, engines.lacking(request.engine)
    is_sif = request.image.is_file() and engines.is_sif(request.image)
    # libraries that run the programs of the image; the launcher of such a one starts them
    interface = mpi.TABLE[description.mpi.family].binary_interface(description.mpi.version)
    fitting = {
        item.name: item
        for item in manifest.load_all()
        if not item.container and item.family.binary_interface(item.mpi.version) == interface
    }
    chosen, known = fitting.get(request.launcher or ""), ", ".join(fitting) or "none"
    has = f"{description.mpi.family} {description.mpi.version}"
    for is_fault, message, place, cure in (
        (
            not manifest.NAME.fullmatch(called),
            f"'{called}' cannot name a stack", "--as", "letters, digits and . _ @ + - after the first",
        ),
        (
            home.exists() and not manifest.path(called).exists(),
            f"a folder that is not a stack is called '{called}'", str(home), "give it another name: --as",
        ),
        (absent, absent, where, "install its package, or name another with --engine"),
        (
            is_sif and not engine.sif,
            f"{request.engine} does not run SIF files", where, "use --engine apptainer, or an OCI archive",
        ),
        (set(where) & set(":,"), "the path of the image has ':' or ','", where, "name it by another path"),
        (
            request.launcher is None and request.mode == "host",
            "--mode host does not say whose MPI library", where, f"add --stack NAME; that fit: {known}",
        ),
        (
            request.launcher and chosen is None,
            f"stack {request.launcher} does not fit the image, which has {has}", where, f"that fit: {known}",
        ),
        (
            chosen and not (engine.inherits or chosen.family.by_port),
            f"ranks in containers of {request.engine} do not reach the launcher of {request.launcher}", where,
            "leave out --stack, or use another engine",
        ),
    ):  # fmt: skip
        if is_fault:
            raise PlumbError(message, place, cure)


def _stale(request: ImageRequest) -> str | None:
    try:
        present = manifest.load(request.called) if manifest.path(request.called).exists() else None
    except PlumbError as error:
        return error.message
    if present is None:
        return "not installed"
    if (had := present.container) is None:
        message, where = f"stack '{request.called}' is of another provider", str(manifest.path(request.called))
        raise PlumbError(message, where, "give it another name: --as")
    wanted = (str(request.image), request.engine, request.mode, request.launcher)
    if (had.image, had.engine, had.mode, had.launcher) != wanted:
        return "other image or options"
    if engines.digest(request.image) != had.sha256:
        return "the image was changed"
    return next(iter(manifest.problems(present)), None)


def _fill(request: ImageRequest, description: Description, home: Path) -> Manifest:
    host = manifest.load(request.launcher) if request.launcher else None
    root = request.image
    if root.is_file() and not engines.is_sif(root):
        root = home / "image"
        unpack(request.image, root)
    if root.is_dir():  # where an image is read only, mounts need folders
        for name in engines.MOUNTS:
            place = root / INSIDE.relative_to("/") / name
            if not place.resolve().is_relative_to(root.resolve()):
                raise PlumbError(f"the image has a link in the place of {INSIDE}", str(root), "do not use it")
            place.mkdir(parents=True, exist_ok=True)
    digest = engines.digest(root)
    library = host.loads.library if host and host.loads and request.mode == "host" else None
    _add_loader(home / "loader", request.called)
    if host and library:
        _add_names(home / "loader" / ABI, mpi.TABLE[description.mpi.family], Path(library), host)
    container = Container(
        engine=request.engine,
        mode=request.mode,
        image=str(request.image),
        sha256=digest if root == request.image else engines.digest(request.image),
        root=str(root),
        root_sha256=digest,
        loader=str(home / "loader"),
        launcher=request.launcher,
        library=str(Path(host.prefix).resolve()) if host and library else None,
        variables=_variables(description, host if library else None),
        hidden=sorted({*(host.environment if host else ()), "LD_LIBRARY_PATH", "LD_PRELOAD"}),
    )
    new_stack = _manifest(request, description, container, host)
    manifest.check(new_stack)
    print(f"{new_stack.name}: {len(new_stack.benchmarks)} benchmarks, image {container.sha256[:12]}", flush=True)
    return new_stack


def _inside(path: str, host: Manifest) -> str:
    """``path``, below the prefix of the ``host``'s stack, as a container sees it."""
    inside = str(INSIDE / "host")
    return path.replace(str(Path(host.prefix).resolve()), inside).replace(host.prefix, inside)


def _variables(description: Description, host: Manifest | None) -> dict[str, str]:
    """The programs' variables: the image's, and with the host's library those of its stack."""
    variables = {name: manifest.expand(value, {}) for name, value in description.environment.items()}
    if host:
        variables |= {name: _inside(manifest.expand(value, {}), host) for name, value in host.environment.items()}
        folders = [str(INSIDE / "bin" / ABI), variables.get("LD_LIBRARY_PATH", "")]
        variables["LD_LIBRARY_PATH"] = ":".join(folder for folder in folders if folder)
    return variables


def _add_loader(folder: Path, owner: str) -> None:
    """Put the loader and the libraries of plumb-bind into ``folder``."""
    folder.mkdir(parents=True)
    binder = paths.binder()
    text = fetch.call(["ldd", str(binder)], "cannot look into plumb-bind", owner)
    (loader,) = _LOADER.findall(text.replace("linux-vdso", " "))
    shutil.copyfile(loader, folder / engines.LOADER)
    (folder / engines.LOADER).chmod(0o755)
    for name, file in libraries.of(binder, binder.name, owner, {}).items():
        shutil.copyfile(file, folder / name)


def _add_names(folder: Path, family: mpi.Family, library: Path, host: Manifest) -> None:
    """In ``folder``, links to the host's ``library`` by all its names, and to what is beside it ($ORIGIN, ld.so(8))."""
    folder.mkdir()
    files = dict.fromkeys((name for name in family.libraries[1:] if "*" not in name), library)
    files |= {entry.name: entry for entry in library.parent.iterdir()}
    for name, file in files.items():
        (folder / name).symlink_to(_inside(str(file), host))


def _manifest(request: ImageRequest, description: Description, container: Container, host: Manifest | None) -> Manifest:
    """The manifest: from the description, and from the image where the description is silent."""
    family, programs = mpi.TABLE[description.mpi.family], sorted(description.benchmarks.items())
    programs_named = [description.launcher.command, *(benchmark.program for _, benchmark in programs)]
    if odd := next((path for path in programs_named if not path.startswith("/")), None):
        raise PlumbError(f"'{odd}' is not an absolute path", f"{request.image}.yaml", "write where it is in the image")
    whose = host if container.mode == "host" else None
    own_launcher, *resolved = _ask(container, ["readlink", "-f", *programs_named], request.called).splitlines()
    linked = _ask(container, ["/bin/sh", "-c", _LIBRARIES, "plumb", *resolved], request.called)
    if lacks := _LACKS.search(linked):
        cure = "the host's library does not fit the image: --mode own" if whose else "install it in the image"
        raise PlumbError(f"in the image: {lacks[0].strip()}", f"stack {request.called}", cure)
    _prove(container, request.called)
    entries = {}
    for (ident, benchmark), path in zip(programs, resolved, strict=True):
        file, message = Path(container.outside(path)), f"the image has no program {benchmark.program}"
        if not file.is_file():
            raise PlumbError(message, f"{request.image}.yaml", "write where it is")
        entries[ident] = benchmark.entry(file, f"in the image {container.sha256[:12]}", [path])
    new_stack = Manifest(
        schema=1,
        name=request.called,
        provider="container",
        mpi=whose.mpi if whose else manifest.Mpi(family=family.name, version=description.mpi.version, abi=family.abi),
        compiler=description.compiler,
        launcher=host.launcher if host else replace(description.launcher, command=own_launcher),
        prefix=whose.prefix if whose else container.outside("/usr"),
        environment=host.environment if host else {},
        modules=[],
        accelerator=description.accelerator,
        benchmarks=entries,
        sources=[],
        container=container,
    )
    if whose:
        return replace(new_stack, loads=whose.loads)
    needed = dict(_LINE.findall(linked))
    return replace(new_stack, loads=_loads(new_stack, container, needed.get(family.library_among(needed) or "")))


def _loads(new_stack: Manifest, container: Container, library: str | None) -> Loads:
    if library is None or not Path(container.root).is_dir():
        return Loads(library=None, files={})
    file = Path(container.outside(_ask(container, ["readlink", "-f", library], new_stack.name).strip()))
    parts = sorted({file, *manifest.parts(new_stack, str(file))})
    return Loads(library=str(file), files={str(part): manifest.sha256(part) for part in parts})


def _ask(container: Container, words: Sequence[str], owner: str, folder: Path | None = None) -> str:
    """The output of ``words`` in a container of their own, whose launch folder is ``folder``."""
    with tempfile.TemporaryDirectory() as scratch:
        command = replace(container, launcher=None).command((), words, 1)
        filled = [word.replace(engines.FOLDER, str(folder or scratch)) for word in command]
        return fetch.call(
            filled,
            f"{container.engine} does not run {Path(words[0]).name} in the image",
            owner,
            {**os.environ, **engines.user()},
        )


def _prove(container: Container, owner: str) -> None:
    """Raise :class:`PlumbError` unless plumb-bind starts programs of the image, and the witness library works there."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "witness").mkdir()
        options = ["--placement", "none", "--threads", "1", "--memory", "firsttouch", "--witness", "witness"]
        _ask(container, [*engines.binder(), *options, "--", "/bin/sh", "-c", "true"], owner, Path(scratch))
        if not any((Path(scratch) / "witness").iterdir()):
            cure = "the image needs a glibc as new as the one that it was built with"
            raise PlumbError("the witness library does not work in the image", f"stack {owner}", cure)


def unpack(archive: Path, target: Path) -> None:
    """Unpack the one image of ``archive`` to the new folder ``target``: all but device files, which engines make.

    Each part must have its recorded SHA-256, and nothing is written outside. All files belong to the caller,
    nobody else may write to it, and no program of it runs with more rights than its caller's. Raises
    :class:`PlumbError`, also for an image that is much larger than its archive.
    """
    target.mkdir(parents=True)
    room = FREE + TIMES * archive.stat().st_size
    try:
        with tarfile.open(archive) as tar:
            (described,) = _document(tar.extractfile("index.json"))["manifests"]
            for layer in _document(_blob(tar, described["digest"], archive))["layers"]:
                with tarfile.open(fileobj=_blob(tar, layer["digest"], archive)) as content:
                    room = _apply(content, target, archive, room)
    except (KeyError, TypeError, ValueError, tarfile.TarError, EOFError) as error:
        message = f"not an OCI archive with one image, in layers of tar or tar+gzip: {error}"
        raise PlumbError(message, str(archive), "make it again, such as podman save --format oci-archive") from None


def _blob(tar: tarfile.TarFile, digest: str, archive: Path) -> IO[bytes]:
    """The file of the archive that is named after its SHA-256, which it must have."""
    name = f"blobs/{digest.replace(':', '/')}"
    if (content := tar.extractfile(name)) is None:
        raise ValueError(f"{name} is not a file")
    if name != f"blobs/sha256/{files.sha256_of(content)}":
        raise PlumbError(f"the archive is damaged: {name} has another SHA-256", str(archive), "copy it again")
    content.seek(0)
    return content


def _document(content: IO[bytes] | None) -> Any:
    text = content.read(MOST_DOCUMENT + 1) if content else b""
    if len(text) > MOST_DOCUMENT:
        raise ValueError(f"a document of more than {MOST_DOCUMENT} bytes")
    return schemas.parse_json(text)


def _apply(layer: tarfile.TarFile, target: Path, archive: Path, room: int) -> int:
    """Add a ``layer`` to the image; returns what is left of ``room``, in bytes."""
    root = target.resolve()
    for member in layer:
        room -= max(member.size, ENTRY)
        if room < 0:
            cure = "unpack it yourself and name the folder, if that is as it should be"
            raise PlumbError(f"the image is more than {TIMES} times as large as its archive", str(archive), cure)
        if member.name.strip("./") == "" or member.isdev():
            continue
        place = root / member.name
        to = [member.name, member.linkname] if member.islnk() else [member.name]
        if any(".." in Path(name).parts or not (root / name).parent.resolve().is_relative_to(root) for name in to):
            raise PlumbError(f"the image would write outside its folder: {to[-1]}", str(archive), "do not use it")
        if place.name == EMPTIED:
            shutil.rmtree(place.parent, ignore_errors=True)
        elif place.name.startswith(REMOVED):
            if (removed := place.name.removeprefix(REMOVED)) not in ("", ".", ".."):
                _remove(place.parent / removed)
        else:
            if not (member.isdir() and place.is_dir() and not place.is_symlink()):
                _remove(place)
            member.mode = member.mode & 0o755 | (0o700 if member.isdir() else 0)  # the caller's whole folder
            member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
            layer.extract(member, root)
    return room


def _remove(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
