locals {
  memory = 640
  disk   = "900"
}
job "literal" {
  group "g" {
    ephemeral_disk { size = local.disk }
    task "t" {
      driver = "exec"
      config { command = "/bin/x" }
      resources { memory = "${local.memory}" }
    }
  }
}
