job "nightly" {
  type = "batch"
  periodic {
    crons            = ["15 2 * * *", "45 14 * * 1"]
    prohibit_overlap = true
    time_zone        = "Europe/Berlin"
  }
  group "g" {
    task "backup" {
      driver = "raw_exec"
      config {
        command = "/usr/local/bin/backup"
      }
      resources {
        cpu    = 100
        memory = 512
      }
    }
  }
}
