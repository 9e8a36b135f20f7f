"""The Debian package: built from a build folder, and the same once more with a higher version."""
import os
import re
import shutil
import subprocess

CONF = "etc/holdfast/holdfast.yaml"


def run(*command, **options):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def build(build_folder, folder):
    run("cpack", "--config", os.path.join(build_folder, "CPackConfig.cmake"), "-B", folder, cwd=build_folder)
    return [os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".deb")][0]


def newer(deb, folder):
    """The same package as version 99.0, with another shipped configuration."""
    tree, made = os.path.join(folder, "newer"), os.path.join(folder, "newer.deb")
    shutil.rmtree(tree, ignore_errors=True)
    run("dpkg-deb", "-R", deb, tree)
    control = os.path.join(tree, "DEBIAN", "control")
    with open(control) as file:
        text = file.read()
    with open(control, "w") as file:
        file.write(re.sub(r"^Version: .*$", "Version: 99.0", text, flags=re.M))
    with open(os.path.join(tree, CONF), "a") as file:
        file.write("# shipped with 99.0\n")
    os.remove(os.path.join(tree, "DEBIAN", "md5sums"))
    run("dpkg-deb", "--root-owner-group", "-b", tree, made)
    return made
