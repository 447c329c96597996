locals {
  base   = 256
  double = local.base * 2
  name   = "worker"
  flags  = concat(["--name=${local.name}"], [for n in range(3) : format("--shard=%02d", n)])
  sizes = {
    small = local.base
    large = local.double + 88
  }
}

locals {
  tags = { owner = upper(local.name), "tier" = "back" }
}

job "crunch" {
  type = "batch"
  meta = merge(local.tags, { run = "nightly" })
  group "g" {
    count = length(local.flags) - 1
    task "t" {
      driver = "exec"
      config {
        command = "/usr/bin/${local.name}"
        args    = local.flags
      }
      env = { SIZE = lookup(local.sizes, "small", 1) }
      resources {
        cores  = ceil(2.1)
        memory = local.sizes["large"]
      }
    }
  }
}
