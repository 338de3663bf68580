# SPDX-License-Identifier: Apache-2.0
"""What a guest is made of: QEMU, a Debian kernel with its modules, and a root
file system. Each is made once and kept below the cache directory; what is half
made when a run is killed has another name and goes with the next run."""

import contextlib
import glob
import gzip
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tempfile

import apt

HERE = os.path.dirname(os.path.abspath(__file__))

# Part of the names in the cache: raise it when what is made changes.
FORMAT = 1

# Modules that the first program of the guest needs, before the root file
# system is there.
BOOT_MODULES = ["virtio_pci", "virtio_blk", "virtio_console", "ext4"]

# What the guest has besides what the package under test depends on.
GUEST_PACKAGES = [
    "systemd", "systemd-sysv", "udev", "kmod", "dbus", "procps", "man-db",
    "python3", "python3-jsonschema", "libbpf1", "openssl"]
GUEST_SUITE = "bookworm"

INSTALLED_QEMU = "qemu-system-x86_64"


def why_no_qemu():
    """None where the installed QEMU runs."""
    if os.uname().machine != "x86_64":
        return "the kernels are for x86-64, and this machine is not"
    try:
        apt.run(INSTALLED_QEMU, "--version")
    except (OSError, apt.Failure) as error:
        return "%s does not run: %s" % (INSTALLED_QEMU, error)
    return None


class Kernel:
    """A kernel in the cache."""

    def __init__(self, directory):
        self.directory = directory
        self.image = directory + "/vmlinuz"
        self.initramfs = directory + "/initrd"
        self.disk = directory + "/disk.img"

    @property
    def version(self):
        with open(self.directory + "/version", encoding="utf-8") as file:
            return file.read().strip()


class Qemu:
    """A QEMU that is fit for this.

    Debian 12's 7.2 is not: its cmpxchg16b leaves garbage in the flags, which
    ends newer kernels at boot, and with a thread per virtual CPU a jump label
    that is patched under load ends in "Oops: int3". Where no newer one can be
    had it runs without that instruction and with one thread.
    """

    def __init__(self, program, directories=(), fit=True):
        self.program = program
        self.directories = directories
        self.fit = fit


class Cache:
    def __init__(self, directory, say):
        """`say` is told what takes a while."""
        self.directory = directory
        self.say = say
        os.makedirs(directory, exist_ok=True)
        for path in glob.glob(directory + "/tmp.*"):
            shutil.rmtree(path, ignore_errors=True)
        self._mirrors = None

    @property
    def mirrors(self):
        if self._mirrors is None:
            self._mirrors = apt.Mirrors()
        return self._mirrors

    @contextlib.contextmanager
    def making(self, name):
        """A directory to make something in, which gets its name when all went
        well."""
        directory = tempfile.mkdtemp(prefix="tmp.", dir=self.directory)
        os.chmod(directory, 0o755)
        try:
            yield directory
            os.rename(directory, os.path.join(self.directory, name))
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    # QEMU.

    def qemu(self):
        installed = INSTALLED_QEMU
        text = apt.run(installed, "--version")
        if int(re.search(r"version (\d+)\.", text)[1]) >= 10:
            return Qemu(installed)
        name = "qemu-%d" % FORMAT
        directory = os.path.join(self.directory, name)
        if not os.path.isdir(directory):
            suite = apt.host_suite() + "-backports"
            self.say("QEMU of " + suite)
            try:
                with self.making(name) as made:
                    self._unpack_qemu(suite, made)
            except apt.Failure as failure:
                self.say("no newer QEMU, going on with what is installed, "
                         "which is slower: %s" % failure)
                return Qemu(installed, fit=False)
        return Qemu(directory + "/usr/bin/qemu-system-x86_64",
                    [directory + "/usr/share/qemu", directory + "/usr/share/seabios",
                     "/usr/lib/ipxe/qemu"])

    def _unpack_qemu(self, suite, directory):
        packages = apt.Apt(self.mirrors, suite, directory + "/apt")
        packages.unpack(["qemu-system-x86", "qemu-system-data", "seabios"],
                        directory)
        for name in ("apt", "usr/share/doc", "usr/share/man"):
            shutil.rmtree(os.path.join(directory, name), ignore_errors=True)
        # It uses the libraries of the one that is installed.
        missing = [line.split()[0] for line in apt.run(
            "ldd", directory + "/usr/bin/qemu-system-x86_64").splitlines()
            if "not found" in line]
        if missing:
            raise apt.Failure("it lacks " + " ".join(missing))

    # Kernels.

    def kernel(self, version, suites):
        """The newest Debian kernel of that version in the first of the suites
        that has one."""
        name = "kernel-%s-%d" % (version, FORMAT)
        directory = os.path.join(self.directory, name)
        if not os.path.isdir(directory):
            with self.making(name) as made:
                self._unpack_kernel(version, suites, made)
                self._make_kernel(made)
        return Kernel(directory)

    def _unpack_kernel(self, version, suites, directory):
        pattern = r"^linux-image-%s\.[0-9].*-cloud-amd64$" % re.escape(version)
        for suite in suites:
            self.say("kernel %s of %s" % (version, suite))
            state = directory + "/apt"
            packages = apt.Apt(self.mirrors, suite, state)
            image = packages.newest(pattern)
            if image:
                break
            shutil.rmtree(state)
        else:
            raise apt.Failure("no package linux-image-%s.*-cloud-amd64 in %s"
                              % (version, " ".join(suites)))
        # Newer ones have the image in one package and the modules in another.
        parts = [name for name in packages.depends(image) if re.match(
            r"linux-(base|binary|modules)-\d", name)]
        packages.unpack([image, *sorted(set(parts))], directory + "/tree")
        shutil.rmtree(state)

    def _make_kernel(self, directory):
        tree = directory + "/tree"
        modules = tree + "/usr/lib/modules"
        if os.path.isdir(tree + "/lib/modules"):
            os.makedirs(tree + "/usr/lib", exist_ok=True)
            os.rename(tree + "/lib/modules", modules)
            shutil.rmtree(tree + "/lib")
        os.symlink("usr/lib", tree + "/lib")
        version, = os.listdir(modules)
        found = glob.glob(tree + "/boot/vmlinuz-*") + glob.glob(
            modules + "/*/vmlinuz")
        shutil.copy(found[0], directory + "/vmlinuz")
        apt.run("depmod", "-b", tree, version)
        self._make_initramfs(tree, version, directory)
        make_disk(modules, directory + "/disk.img", spare_mib=16)
        shutil.rmtree(tree)
        with open(directory + "/version", "w", encoding="utf-8") as file:
            file.write(version + "\n")

    @staticmethod
    def _make_initramfs(tree, version, directory):
        root = directory + "/initramfs"
        for name in ("bin", "modules", "dev", "proc", "sys", "new"):
            os.makedirs(os.path.join(root, name))
        shutil.copy("/bin/busybox", root + "/bin/busybox")
        shutil.copy(HERE + "/guest/init", root + "/init")
        os.chmod(root + "/init", 0o755)
        order = []
        for module in BOOT_MODULES:
            # A module that is built in has no file, and a line of its own.
            shown = apt.run("modprobe", "-d", tree, "-S", version,
                            "--show-depends", module)
            order += re.findall(r"(?m)^insmod (\S+)", shown)
        names = []
        for path in dict.fromkeys(order):
            name = re.sub(r"\.ko.*$", ".ko", os.path.basename(path))
            names.append(name)
            with open(os.path.join(root, "modules", name), "wb") as file:
                file.write(read_packed(path))
        with open(root + "/modules/order", "w", encoding="utf-8") as file:
            file.write("".join(name + "\n" for name in names))
        pack_initramfs(root, directory + "/initrd")
        shutil.rmtree(root)

    # The root file system.

    def root_disk(self, package):
        """With what `package`, a .deb, depends on."""
        wanted = sorted({*GUEST_PACKAGES, *dependencies(package)})
        key = hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:12]
        name = "root-%s-%s-%d" % (GUEST_SUITE, key, FORMAT)
        directory = os.path.join(self.directory, name)
        if not os.path.isdir(directory):
            self.say("root file system of %s" % GUEST_SUITE)
            with self.making(name) as made:
                self._make_root(wanted, made)
        return directory + "/disk.img"

    def _make_root(self, packages, directory):
        root = directory + "/root"
        apt.run("mmdebstrap", "--variant=minbase", "--mode=root",
                "--architectures=amd64", "--include=" + ",".join(packages),
                '--aptopt=Acquire::Check-Valid-Until "false"',
                '--aptopt=Acquire::Retries "3"',
                '--aptopt=Acquire::Languages "none"',
                "--dpkgopt=force-unsafe-io",
                "--dpkgopt=path-exclude=/usr/share/man/*",
                "--dpkgopt=path-exclude=/usr/share/doc/*",
                "--dpkgopt=path-exclude=/usr/share/locale/*",
                # Pages of what is installed later stay, unlike these.
                '--customize-hook=rm "$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"',
                GUEST_SUITE, root, *self.mirrors.sources(GUEST_SUITE),
                env=dict(os.environ, LC_ALL="C"))
        for name, text in (("hostname", "guest\n"), ("fstab", ""),
                           ("hosts", "127.0.0.1 localhost guest\n"),
                           ("machine-id", "0123456789abcdef" * 2 + "\n")):
            with open(os.path.join(root, "etc", name), "w",
                      encoding="utf-8") as file:
                file.write(text)
        make_disk(root, directory + "/disk.img", spare_mib=1024)
        shutil.rmtree(root)


def read_packed(path):
    """A module's bytes, however it is packed."""
    if path.endswith(".zst"):
        return subprocess.run(["zstd", "-dcq", path], check=True,
                              stdout=subprocess.PIPE).stdout
    opened = {".xz": lzma.open, ".gz": gzip.open}.get(
        os.path.splitext(path)[1], open)
    with opened(path, "rb") as file:
        return file.read()


def pack_initramfs(root, target):
    with open(target, "wb") as file:
        subprocess.run(
            "find . | LC_ALL=C sort | cpio -o -H newc --quiet -R 0:0",
            shell=True, cwd=root, stdout=file, check=True)


def make_disk(directory, target, spare_mib):
    """An ext4 image of the directory; what is spare takes no room here."""
    used = int(apt.run("du", "-sm", directory).split()[0])
    apt.run("mkfs.ext4", "-q", "-F", "-O", "^has_journal,^metadata_csum", "-E",
            "lazy_itable_init=1", "-d", directory, target,
            "%dM" % (used * 6 // 5 + spare_mib))


def dependencies(package):
    """The first alternative of each thing that a .deb depends on."""
    text = apt.run("dpkg-deb", "-f", package, "Depends")
    return [re.match(r"[\w.+-]+", part.strip())[0]
            for part in text.split(",")]
