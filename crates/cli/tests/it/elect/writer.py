# Writes a row under its fencing token again and again, and says what became of each try.
import os, sqlite3, sys, time

base = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
token = int(os.environ["FRAZIL_FENCE"])
print("leader", token, os.getpid(), flush=True)
while True:
    done = base.execute(sys.argv[2], {"1": str(token), "2": token, "3": 1})
    print("written" if done.rowcount == 1 else "refused", flush=True)
    time.sleep(0.02)
