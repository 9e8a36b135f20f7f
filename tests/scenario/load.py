"""Words about many clients at once. A mixin of the runner's World."""
import http.client
import itertools
import threading
import time

MOST_REFUSED = 5000


class Load:
    def do_flood(self, name, count, *words):
        """`flood a 1000 by 8 [beside admin /v1/tools]`: so many submissions from so many clients, each repeated with its key when it is refused for the
        load (503 with a Retry-After), while somebody asks for a page without pause."""
        clients = int(words[words.index("by") + 1])
        numbers, over, refused = itertools.count(1), threading.Event(), []

        def submit():
            for number in iter(lambda: next(numbers), None):
                if number > int(count):
                    return
                label = name if number == 1 else f"{name}#{number}"
                answer = self.send(name, f"flood-{name}-{number}", label)
                while answer.status == 503 and answer.headers["Retry-After"] and len(refused) < MOST_REFUSED:
                    refused.append(answer)
                    time.sleep(0.05)
                    answer = self.send(name, f"flood-{name}-{number}", label)
                if answer.status not in (200, 201):
                    self.problems.append(f"submission {number}: {answer.status} {answer.body[:200]}")

        def ask(listener, path):
            while not over.is_set():
                answer = self.product.request("GET", path, admin=listener == "admin")
                if answer.status not in (200, 503):
                    self.problems.append(f"{path}: {answer.status} {answer.body[:200]}")
                    return

        def guarded(work, *arguments):
            try:
                work(*arguments)
            except (OSError, http.client.HTTPException) as e:
                self.problems.append(f"{type(e).__name__}: {e}")
        beside = [words[i + 1:i + 3] for i, word in enumerate(words) if word == "beside"]
        askers = [threading.Thread(target=guarded, args=(ask, *where)) for where in beside]
        submitters = [threading.Thread(target=guarded, args=(submit,)) for _ in range(clients)]
        for thread in askers + submitters:
            thread.start()
        for thread in submitters:
            thread.join()
        over.set()
        for thread in askers:
            thread.join()
