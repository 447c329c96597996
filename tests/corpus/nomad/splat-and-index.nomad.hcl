locals {
  nodes = [{ name = "a", mem = 100 }, { name = "b", mem = 250 }]
  total = max(local.nodes[*].mem...)
}
job "splat" {
  group "g" {
    task "t" {
      driver = "exec"
      config {
        command = "/bin/x"
        args    = local.nodes.*.name
      }
      resources {
        memory = local.total + local.nodes.0.mem
      }
    }
  }
}
