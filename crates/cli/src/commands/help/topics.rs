//! Texts of `frazil help` that belong to no single command.

/// All that a URL can say; the options are those that `frazil-coord` knows, which a test compares.
pub(super) const STORES: &str = "\
Stores, as --store and $FRAZIL_STORE name them. By default it is a directory under the state directory.

  file:DIRECTORY                        the processes of one machine
  static:N                              the fixed worker N, for one process at a time
  memory:[NAME]                         this process alone: for trying out
  redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]
  redis+sentinel://HOST,HOST/MASTER     Redis behind Sentinel
  redis+cluster://HOST,HOST             a Redis Cluster
  etcd://[USER:PASSWORD@]HOST,HOST[/PREFIX]
  zk://[USER:PASSWORD@]HOST,HOST[/PATH] ZooKeeper

With TLS: rediss://, rediss+sentinel://, rediss+cluster://, etcds://, zks://.

Options follow a question mark and are joined by '&':

  timeout=5s           how long a request may take (servers)
  password_file=FILE   the file with the password (servers)
  ca=FILE              whom to trust, instead of the system's authorities (TLS)
  cert=FILE, key=FILE  our own certificate and its key (TLS)
  durability=async     or wait:N: replicas that must confirm each write (Redis)
  isolation=15s        how long an old master may go on after a fail-over (Redis)
  prefix=frazil        what all keys begin with (Redis)
  session=30s          how long a silent client stays present (ZooKeeper)
  state=DIRECTORY      where the horizon is kept (static)
  unsafe_filesystem=allow  use a file system of any kind (file, static)
  unsafe_owner=allow   use a directory of another user (file, static)

The password is best kept out of it: in the file that password_file names, or in
$FRAZIL_STORE_PASSWORD.";

/// How a layout is written.
pub(super) const LAYOUTS: &str = "\
Layouts, as --layout and $FRAZIL_LAYOUT name them: a preset, or a text that says how many bits each field of an
ID has, from the most significant one, when time begins, and how long a tick lasts.

  time:41 worker:10 sequence:12 @2024-01-01T00:00:00Z tick:1ms

The worker may have several named parts (region:3 node:7). `frazil layout L` shows what a layout holds and how long
it lasts. All nodes of a namespace have the same one: two layouts issue the same numbers.

Presets:";
