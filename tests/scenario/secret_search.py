"""The planted secret is sent to the tools and stands nowhere else."""
import os

ANSWERS = ("/v1/unknowns?state=all&limit=200", "/v1/tools?limit=200", "/v1/breakers?limit=200", "/v1/audit?limit=200", "/metrics", "/v1/runs?limit=200")


def after_every_scenario(world, secret):
    """Asks for everything that can be asked for, and looks into every file of the product's folder: database, WAL, log."""
    if world.product.running():
        for path in ANSWERS:
            world.product.request("GET", path, admin=True)
        for run in sorted(world.run_ids):
            for part in ("", "/events", "/attempts"):
                world.product.request("GET", f"/v1/runs/{run}{part}")
    faults = [f"the secret is in {place}" for place in world.product.leaks]
    for folder, _, names in os.walk(world.product.folder):
        for name in names:
            try:
                with open(os.path.join(folder, name), "rb") as f:
                    if secret.encode() in f.read():
                        faults.append(f"the secret is in the file {name}")
            except OSError:
                pass
    hits = [hit for listener in world.faults.listeners.values() for tool in listener.tools.values() for hit in tool.hits]
    if hits and not any(secret in hit.header("x-planted") for hit in hits):
        faults.append("the secret was never sent, so its absence proves nothing")
    return faults
