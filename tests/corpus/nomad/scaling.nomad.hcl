job "elastic" {
  group "web" {
    scaling {
      enabled = true
      min     = 3
      max     = 12
      policy {
        cooldown = "2m"
      }
    }
    task "web" {
      driver = "exec"
      config { command = "/bin/web" }
      resources { memory = 128 }
      scaling "mem" {
        enabled = true
        max     = 512
        policy {}
      }
    }
  }
  group "fixed" {
    count = 2
    scaling {
      min = 1
      max = 4
    }
    task "w" {
      driver = "exec"
      config { command = "/bin/w" }
      resources { memory = 64 }
    }
  }
}
