# SPDX-License-Identifier: Apache-2.0
"""Boots a guest, runs the checks in it and reports what they said.

Everything that a boot brings with it (the package under test, the checks) is in
a second archive behind the initramfs, which the guest's first program copies to
/run. Reports come back through virtio serial ports. The disks are not changed.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time

import images

COMMAND_LINE = (
    "console=ttyS0 panic=-1 quiet loglevel=4 random.trust_cpu=on"
    " systemd.unit=multi-user.target systemd.show_status=0 net.ifnames=0")
# Without this the emulated machine reads its time from a slow device.
TCG_COMMAND_LINE = " tsc=reliable clocksource=tsc"

# What a guest without network and users can do without, and what costs
# seconds in an emulated machine: above all a module for each feature of the
# CPU.
MASKED = """
apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer man-db.timer
e2scrub_all.timer e2scrub_reap.service fstrim.timer getty@tty1.service
serial-getty@ttyS0.service ldconfig.service systemd-hwdb-update.service
systemd-udev-trigger.service modprobe@dm_mod.service modprobe@loop.service
modprobe@fuse.service modprobe@configfs.service modprobe@efi_pstore.service
modprobe@drm.service dev-hugepages.mount dev-mqueue.mount
sys-kernel-config.mount sys-fs-fuse-connections.mount
systemd-journal-flush.service systemd-logind.service
systemd-update-utmp.service systemd-update-utmp-runlevel.service
systemd-pstore.service systemd-timesyncd.service systemd-random-seed.service
systemd-machine-id-commit.service
""".split()

UNIT = """
[Unit]
Description=Checks
After=basic.target dbus.service
[Service]
Type=simple
ExecStart=/usr/bin/python3 -B /run/vm/main.py {checks}
StandardInput=null
StandardOutput=journal+console
StandardError=journal+console
TasksMax=infinity
LimitMEMLOCK=infinity
KillMode=process
"""

CPUS = 2
MEMORY = "2G"
BOOT_SECONDS = 120


class Boot:
    """One start of the guest: the check modules that run in it, and what they
    need of the kernel's command line."""

    def __init__(self, name, command_line, checks):
        self.name = name
        self.command_line = command_line
        self.checks = checks


class Machine:
    def __init__(self, qemu, kernel, root_disk, payload, accelerator):
        """`payload` is a directory whose content the guest has in /run/vm."""
        self.qemu = qemu
        self.kernel = kernel
        self.root_disk = root_disk
        self.payload = payload
        self.accelerator = accelerator

    def run(self, boot, seconds, log, report):
        """Calls `report` with each result, a dict, as it comes. Returns what
        went wrong with the guest itself, or None. `log` is the path that what
        the checks and the console print is kept under."""
        directory = tempfile.mkdtemp(prefix="ksym-vm-")
        try:
            self._make_initramfs(boot, directory)
            command = self._command(boot, directory)
            open(directory + "/results", "wb").close()
            with open(directory + "/qemu", "wb") as output:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output,
                    stderr=subprocess.STDOUT)
            try:
                return self._follow(process, directory, seconds, report)
            finally:
                process.kill()
                process.wait()
        finally:
            with open(log, "wb") as kept:
                for name in ("qemu", "console", "log"):
                    path = os.path.join(directory, name)
                    if os.path.exists(path):
                        with open(path, "rb") as file:
                            shutil.copyfileobj(file, kept)
            shutil.rmtree(directory, ignore_errors=True)

    def _make_initramfs(self, boot, directory):
        target = directory + "/boot/boot"
        units = target + "/systemd/system"
        os.makedirs(units + "/multi-user.target.wants")
        shutil.copytree(self.payload, target + "/vm")
        with open(units + "/checks.service", "w", encoding="utf-8") as file:
            file.write(UNIT.format(checks=" ".join(boot.checks)))
        os.symlink("../checks.service",
                   units + "/multi-user.target.wants/checks.service")
        for name in MASKED:
            os.symlink("/dev/null", os.path.join(units, name))
        images.pack_initramfs(directory + "/boot", directory + "/added")
        with open(directory + "/initrd", "wb") as joined:
            for path in (self.kernel.initramfs, directory + "/added"):
                with open(path, "rb") as file:
                    shutil.copyfileobj(file, joined)

    def _command(self, boot, directory):
        command_line = COMMAND_LINE
        if self.accelerator == "kvm":
            cpu = ["-accel", "kvm", "-cpu", "host"]
        else:
            thread = "multi" if self.qemu.fit else "single"
            features = "" if self.qemu.fit else ",cx16=off"
            cpu = ["-accel", "tcg,thread=%s,tb-size=256" % thread, "-cpu",
                   "max,la57=off,svm=off" + features]
            command_line += TCG_COMMAND_LINE
        command = [self.qemu.program]
        for path in self.qemu.directories:
            command += ["-L", path]
        command += [
            "-M", "q35", *cpu, "-smp", str(CPUS), "-m", MEMORY, "-nodefaults",
            "-no-user-config", "-no-reboot", "-display", "none", "-nic",
            "none", "-kernel", self.kernel.image, "-initrd",
            directory + "/initrd", "-append",
            (command_line + " " + boot.command_line).strip(),
            "-serial", "file:%s/console" % directory]
        for number, (disk, options) in enumerate([
                (self.root_disk, "snapshot=on,cache=unsafe"),
                (self.kernel.disk, "readonly=on")]):
            command += ["-drive", "if=none,id=d%d,file=%s,format=raw,%s" % (
                number, disk, options), "-device",
                "virtio-blk-pci,drive=d%d" % number]
        command += ["-device", "virtio-serial-pci"]
        for name in ("results", "log"):
            command += ["-chardev", "file,id=%s,path=%s/%s" % (
                name, directory, name), "-device",
                "virtserialport,chardev=%s,name=vm.%s" % (name, name)]
        return command

    @staticmethod
    def _follow(process, directory, seconds, report):
        """Until the guest has ended, with or without having said so."""
        begin = time.monotonic()
        started = ended = False
        with open(directory + "/results", "rb") as results:
            rest = b""
            while True:
                over = process.poll() is not None
                rest += results.read()
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    result = json.loads(line)
                    started = True
                    ended = ended or "ended" in result
                    report(result)
                past = time.monotonic() - begin
                if over:
                    return None if ended else "the guest died"
                if not started and past > BOOT_SECONDS:
                    return "nothing runs %d s after the start" % BOOT_SECONDS
                if past > seconds:
                    return "not at its end after %d s" % seconds
                time.sleep(0.05)
