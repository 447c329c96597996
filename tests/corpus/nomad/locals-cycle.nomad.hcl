locals {
  a = local.b + 1
  b = local.a + 1
}
job "loop" {
  group "g" {
    task "t" {
      driver = "exec"
      config { command = "/bin/true" }
      resources { memory = local.a }
    }
  }
}
