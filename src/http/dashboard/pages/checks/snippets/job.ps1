$Url = '{{url}}'

function Send-Heartbeat($Signal, $Text = '') {
  [byte[]] $body = [Text.Encoding]::UTF8.GetBytes($Text) | Select-Object -Last 10000
  foreach ($wait in 0, 1, 2, 4) {
    Start-Sleep -Seconds $wait
    try {
      $null = Invoke-WebRequest "$Url$Signal" -Method Post -Body $body -TimeoutSec 10 -UseBasicParsing
      return
    } catch {
      $problem = $_.Exception
      $status = [int] $problem.Response.StatusCode
      if ($status -ge 400 -and $status -lt 500) { break }
    }
  }
  Write-Warning "the heartbeat could not be sent: $($problem.Message)"
}

Send-Heartbeat '/start'
$output = ./your-job 2>&1 | Out-String
$code = $LASTEXITCODE
Write-Output $output
Send-Heartbeat $(if ($code -ge 0 -and $code -le 255) { "/$code" } else { '/fail' }) $output
exit $code
