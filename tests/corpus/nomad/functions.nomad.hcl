locals {
  raw   = "  Batch-Runner  "
  parts = split("-", trimspace(lower(local.raw)))
  pairs = zipmap(["x", "y"], [1, 2])
}
job "functions" {
  group "g" {
    task "t" {
      driver = "exec"
      config {
        command = join("/", ["", "opt", element(local.parts, 3)])
        args = flatten([
          ["--first", title(local.parts[0])],
          [for k, v in local.pairs : "--${k}=${v}" if v > 1],
          ["--json", jsonencode({ list = [1, true, null], text = "q\"q" })],
          [replace("a.b.c", ".", "/"), trimprefix("v1.2", "v"), substr("abcdef", 2, 3)],
          [convert(max(1, 7, 3), string), format("%05.1f|%-4s|%x", 3.14159, "ab", 255)],
          coalescelist([], reverse(sort(["b", "c", "a"]))),
        ])
      }
      resources {
        cores  = parseint("11", 2)
        memory = min(4096, pow(2, 10), abs(-5000))
      }
    }
  }
}
